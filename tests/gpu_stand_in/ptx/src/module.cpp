// SPDX-License-Identifier: Apache-2.0
// Reads the declarations of a PTX module.
#include "module.hpp"

#include <atomic>
#include <charconv>
#include <cstring>

namespace triax::gpu_stand_in {

Type type_named(std::string_view name) {
  static const std::map<std::string_view, Type> types = {
      {"pred", Type::kPred}, {"b8", Type::kB8},       {"s8", Type::kS8},         {"u8", Type::kU8},
      {"b16", Type::kB16},   {"s16", Type::kS16},     {"u16", Type::kU16},       {"f16", Type::kF16},
      {"bf16", Type::kBf16}, {"b32", Type::kB32},     {"s32", Type::kS32},       {"u32", Type::kU32},
      {"f32", Type::kF32},   {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBf16x2}, {"b64", Type::kB64},
      {"s64", Type::kS64},   {"u64", Type::kU64},     {"f64", Type::kF64}};
  const auto found = types.find(name);
  return found == types.end() ? Type::kNone : found->second;
}

int bytes_of(Type type) {
  switch (type) {
    case Type::kB8:
    case Type::kS8:
    case Type::kU8:
      return 1;
    case Type::kB16:
    case Type::kS16:
    case Type::kU16:
    case Type::kF16:
    case Type::kBf16:
      return 2;
    case Type::kB64:
    case Type::kS64:
    case Type::kU64:
    case Type::kF64:
      return 8;
    default:
      return 4;
  }
}

std::uint64_t read_integer(const Token& token) {
  std::string_view s = token.text;
  int base = 10;
  if (!s.empty() && (s.back() == 'U' || s.back() == 'u')) s.remove_suffix(1);
  if (s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
    base = 16;
    s.remove_prefix(2);
  } else if (s.size() > 2 && s[0] == '0' && (s[1] == 'b' || s[1] == 'B')) {
    base = 2;
    s.remove_prefix(2);
  } else if (s.size() > 1 && s[0] == '0') {
    base = 8;
    s.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto end = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (end.ec != std::errc{} || end.ptr != s.data() + s.size()) refuse(token.line, "invalid number", token.text);
  return value;
}

namespace {

using Tokens = std::vector<Token>;

const Token& at_or_end(const Tokens& t, std::size_t at) {
  if (at >= t.size())
    refuse(t.empty() ? 1 : t.back().line, "unexpected end of the module behind", t.empty() ? "" : t.back().text);
  return t[at];
}

void expect(const Tokens& t, std::size_t& at, std::string_view what) {
  if (at_or_end(t, at).text != what) refuse(t[at].line, "expected " + std::string(what), t[at].text);
  ++at;
}

void read_initial(const Tokens& t, std::size_t& at, Declaration& d) {
  d.initial.resize(d.bytes);
  const bool list = at_or_end(t, at).text == "{";
  if (list) ++at;
  const int width = bytes_of(d.type);
  for (std::size_t n = 0;; ++n) {
    if (list && at_or_end(t, at).text == "}") break;
    const bool minus = at_or_end(t, at).text == "-";
    if (minus) ++at;
    const Token& token = at_or_end(t, at++);
    std::uint64_t value = 0;
    if (is_float(d.type)) {
      if (token.text.size() < 3 || token.text[0] != '0') refuse(token.line, "unknown initial value", token.text);
      const std::string hexadecimal = "0x" + std::string(token.text.substr(2));
      value = read_integer({hexadecimal, token.line});
    } else {
      value = read_integer(token);
    }
    if (minus) value = 0 - value;
    if ((n + 1) * width > d.bytes) refuse(token.line, "more initial values than the variable has", d.name);
    std::memcpy(&d.initial[n * width], &value, width);
    if (!list) break;
    if (at_or_end(t, at).text == ",") ++at;
  }
  if (list) expect(t, at, "}");
}

std::vector<Param> read_params(const Tokens& t, std::size_t& at) {
  std::vector<Param> params;
  if (at_or_end(t, at).text != "(") return params;
  ++at;
  std::size_t offset = 0;
  while (at_or_end(t, at).text != ")") {
    if (t[at].text == ",") ++at;
    if (at_or_end(t, at).text != ".param" && t[at].text != ".reg") refuse(t[at].line, "expected .param", t[at].text);
    ++at;
    const Declaration d = read_declaration(t, at);
    offset = (offset + d.align - 1) / d.align * d.align;
    params.push_back({d.name, offset, d.bytes, d.align});
    offset += d.bytes;
  }
  ++at;
  return params;
}

Dim3 read_dim3(const Tokens& t, std::size_t& at) {
  Dim3 d;
  unsigned* parts[] = {&d.x, &d.y, &d.z};
  for (int n = 0; n < 3; ++n) {
    *parts[n] = static_cast<unsigned>(read_integer(at_or_end(t, at++)));
    if (at_or_end(t, at).text != ",") break;
    ++at;
  }
  return d;
}

void skip_braces(const Tokens& t, std::size_t& at) {
  int depth = 0;
  do {
    const auto text = at_or_end(t, at++).text;
    depth += text == "{" ? 1 : text == "}" ? -1 : 0;
  } while (depth > 0);
}

void skip_line(const Tokens& t, std::size_t& at) {
  const unsigned line = t[at].line;
  while (at < t.size() && t[at].line == line) ++at;
}

Function read_function(const Tokens& t, std::size_t& at) {
  Function f;
  f.line = t[at].line;
  f.entry = t[at++].text == ".entry";
  if (!f.entry) f.results = read_params(t, at);
  f.name = at_or_end(t, at++).text;
  f.params = read_params(t, at);
  for (;;) {
    const Token& token = at_or_end(t, at);
    if (token.text == ";") {
      ++at;
      break;
    }
    ++at;
    if (token.text[0] == '{') {
      f.body = token;
      break;
    }
    if (token.text == ".maxntid")
      f.max_threads = read_dim3(t, at);
    else if (token.text == ".reqntid")
      f.required_threads = read_dim3(t, at);
    else if (token.text == ".minnctapersm" || token.text == ".maxnreg") // for ptxas
      ++at;
    else if (token.text == ".noreturn") {
    } else
      refuse(token.line, "unknown directive of a function", token.text);
  }
  return f;
}

} // namespace

Declaration read_declaration(const Tokens& t, std::size_t& at) {
  Declaration d;
  std::size_t align = 0;
  for (;; ++at) {
    const Token& token = at_or_end(t, at);
    if (token.text == ".align") {
      align = read_integer(at_or_end(t, ++at));
      continue;
    }
    if (token.text == ".ptr" || token.text == ".global" || token.text == ".const") continue;
    if (token.text[0] != '.') break;
    d.type = type_named(token.text.substr(1));
    if (d.type == Type::kNone) refuse(token.line, "unknown type", token.text);
  }
  const Token& name = at_or_end(t, at++);
  d.name = name.text;
  if (d.type == Type::kNone) refuse(name.line, "declaration without a type", name.text);
  d.bytes = bytes_of(d.type);
  d.align = align ? align : d.bytes;
  while (at_or_end(t, at).text == "[") {
    if (at_or_end(t, ++at).text == "]")
      d.open_array = true;
    else
      d.bytes *= read_integer(t[at++]);
    expect(t, at, "]");
  }
  if (at_or_end(t, at).text == "=") read_initial(t, ++at, d);
  return d;
}

ModuleText::ModuleText(std::string_view ptx) : text(ptx) {
  const Tokens tokens = split_module(text);
  static std::atomic<std::uint64_t> next_id = 1;
  bool external = false;
  std::size_t at = 0;
  while (at < tokens.size()) {
    const Token& token = tokens[at];
    const auto word = token.text;
    if (word == ".version" || word == ".target" || word == ".address_size" || word == ".file") {
      skip_line(tokens, at);
    } else if (word == ".visible" || word == ".weak" || word == ".extern") {
      external = word == ".extern";
      ++at;
    } else if (word == ".section") {
      while (at_or_end(tokens, at).text != "{") ++at;
      skip_braces(tokens, at);
    } else if (word == ".entry" || word == ".func") {
      Function f = read_function(tokens, at);
      Function& known = functions[f.name];
      if (known.body.text.empty() || !f.body.text.empty()) known = f;
      external = false;
    } else if (word == ".shared" || word == ".global" || word == ".const") {
      Declaration d = read_declaration(tokens, ++at);
      expect(tokens, at, ";");
      if (word == ".shared") {
        shared[d.name] = {d.open_array ? 0 : d.bytes, d.align, d.open_array || external};
      } else {
        if (d.open_array || external) refuse(token.line, "variable of another module is not known", d.name);
        d.initial.resize(d.bytes);
        variables.push_back({d.name, d.bytes, d.align, std::move(d.initial), next_id++});
      }
      external = false;
    } else {
      refuse(token.line, "unknown directive", word);
    }
  }
}

const Kernel* ModuleText::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  if (const auto known = decoded_.find(name); known != decoded_.end()) return known->second.get();
  const auto function = functions.find(name);
  if (function == functions.end() || !function->second.entry) return nullptr;
  auto kernel = decode_kernel(*this, function->second);
  return (decoded_[std::string(name)] = std::move(kernel)).get();
}

std::shared_ptr<const Module> read_module(std::string_view ptx) {
  return std::make_shared<ModuleText>(ptx);
}

} // namespace triax::gpu_stand_in
