// SPDX-License-Identifier: Apache-2.0
// Statements of a kernel's body: declarations, labels, calls and instructions.
#include "decode.hpp"

#include <cstring>

#include "opcode.hpp"
#include "profile.hpp"

namespace triax::gpu_stand_in {

namespace {

int width_of(Type type) {
  return bytes_of(type) == 8 ? 8 : 4;
}
constexpr std::size_t kMaxCalls = 16;

} // namespace

std::uint32_t Decoder::new_register(Type type) {
  const std::uint32_t at = code.register_bytes;
  // A predicate is one word for all lanes; 32 bytes keep the alignment of vectors.
  code.register_bytes += type == Type::kPred ? 32 : kLanes * width_of(type);
  return at;
}

std::size_t Decoder::new_local(std::size_t bytes, std::size_t align) {
  kernel.local_bytes = (kernel.local_bytes + align - 1) / align * align;
  const std::size_t at = kernel.local_bytes;
  kernel.local_bytes += bytes;
  return at;
}

std::string Decoder::text_of(std::size_t begin, std::size_t end) const {
  std::string text;
  for (std::size_t n = begin; n < end; ++n) {
    const auto word = token(n).text;
    const bool tight = text.empty() || word == "," || word == "]" || word == "}" || word == ")" || word == "+" ||
                       word == ":" || std::string_view("[{(@!+-|").find(text.back()) != std::string_view::npos;
    if (!tight) text += ' ';
    text += word;
  }
  return text;
}

void Decoder::body(const Function& function, Scope first) {
  if (bodies.size() >= kMaxCalls)
    refuse(function.line, "calls are nested too deeply (recursion is not supported)", function.name);
  const std::string_view text = function.body.text;
  if (text.empty()) refuse(function.line, "function without a body", function.name);
  Body mine{split_tokens(text.substr(1, text.size() - 2), function.body.line), {std::move(first)}, {}, {}, {}};
  bodies.push_back(&mine);
  const std::size_t end = mine.tokens.size();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < end;) {
    const auto word = token(at).text;
    if (at == begin && word == "{") {
      mine.scopes.emplace_back();
      begin = ++at;
      continue;
    }
    if (at == begin && word == "}") {
      mine.scopes.pop_back();
      begin = ++at;
      continue;
    }
    if (word == ":" && at == begin + 1) {
      mine.labels[token(begin).text] = static_cast<int>(code.code.size());
      begin = ++at;
      continue;
    }
    if (word == ";") {
      if (at > begin) statement(begin, at);
      begin = ++at;
      continue;
    }
    // .loc and .file have no end.
    if (at == begin && (word == ".loc" || word == ".file")) {
      const unsigned line = token(at).line;
      while (at < end && token(at).line == line) ++at;
      begin = at;
      continue;
    }
    ++at;
  }
  if (begin != end) refuse(token(begin).line, "statement without an end", token(begin).text);
  for (const auto& [at, label] : mine.jumps) {
    const auto found = mine.labels.find(label->text);
    if (found == mine.labels.end()) refuse(label->line, "unknown label", label->text);
    code.code[at].target = found->second;
  }
  for (const std::size_t at : mine.returns) code.code[at].target = static_cast<int>(code.code.size());
  bodies.pop_back();
}

void Decoder::statement(std::size_t begin, std::size_t end) {
  if (token(begin).text[0] == '.')
    directive(begin, end);
  else
    instruction(begin, end);
}

void Decoder::directive(std::size_t begin, std::size_t end) {
  const Token& first = token(begin);
  if (first.text == ".pragma") return; // "nounroll" and its like: for ptxas
  if (first.text == ".reg") return declare_registers(begin + 1, end);
  if (first.text != ".shared" && first.text != ".local" && first.text != ".param")
    refuse(first.line, "unknown directive", first.text);
  std::size_t at = begin + 1;
  const Declaration d = read_declaration(current().tokens, at);
  if (at != end) refuse(first.line, "unknown declaration", text_of(begin, end));
  if (first.text == ".shared") {
    kernel.static_shared_bytes = (kernel.static_shared_bytes + d.align - 1) / d.align * d.align;
    const auto name = token(at - 1).text == "]" ? std::string_view(token(at - 4).text) : token(at - 1).text;
    shared_at[name] = kernel.static_shared_bytes;
    kernel.static_shared_bytes += d.bytes;
    return;
  }
  const auto name = token(at - 1).text == "]" ? std::string_view(token(at - 4).text) : token(at - 1).text;
  current().scopes.back().local[name] = new_local(d.bytes, std::max<std::size_t>(d.align, 8));
}

void Decoder::declare_registers(std::size_t at, std::size_t end) {
  if (token(at).text[0] != '.') refuse(token(at).line, "register without a type", token(at).text);
  const Type type = type_named(token(at).text.substr(1));
  if (type == Type::kNone) refuse(token(at).line, "unknown type", token(at).text);
  auto& registers = current().scopes.back().registers;
  for (++at; at < end; ++at) {
    const auto name = token(at).text;
    if (name == ",") continue;
    if (at + 1 < end && token(at + 1).text == "<") {
      const auto count = read_integer(token(at + 2));
      for (std::uint64_t n = 0; n < count; ++n) {
        code.names.push_back(std::string(name) + std::to_string(n));
        registers[code.names.back()] = {new_register(type), type};
      }
      at += 3;
    } else {
      registers[name] = {new_register(type), type};
    }
  }
}

std::vector<Decoder::Span> Decoder::split_operands(std::size_t begin, std::size_t end) const {
  std::vector<Span> spans;
  int depth = 0;
  std::size_t first = begin;
  for (std::size_t at = begin; at < end; ++at) {
    const char c = token(at).text[0];
    if (c == '[' || c == '{' || c == '(') ++depth;
    if (c == ']' || c == '}' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      spans.emplace_back(first, at);
      first = at + 1;
    }
  }
  if (first < end) spans.emplace_back(first, end);
  return spans;
}

void Decoder::instruction(std::size_t begin, std::size_t end) {
  Instruction i;
  i.line = token(begin).line;
  i.text = static_cast<std::uint32_t>(code.texts.size());
  const std::size_t whole = begin;
  if (token(begin).text == "@") {
    i.negated = token(++begin).text == "!";
    if (i.negated) ++begin;
    const Register* predicate = find_register(token(begin).text);
    if (!predicate || predicate->type != Type::kPred) refuse(i.line, "unknown predicate", token(begin).text);
    i.predicate = static_cast<std::int32_t>(predicate->offset);
    ++begin;
  }
  const Token& opcode = token(begin);
  if (opcode.text == "call" || opcode.text == "call.uni") {
    if (i.predicate >= 0) refuse(i.line, "call under a predicate is not supported", text_of(whole, end));
    return call(begin + 1, end);
  }
  read_opcode(opcode.text, i.line, i);
  if (i.op == Op::kBra) {
    current().jumps.emplace_back(code.code.size(), &token(begin + 1));
  } else if (i.op == Op::kExit && opcode.text != "exit" && bodies.size() > 1) {
    i.op = Op::kBra;
    current().returns.push_back(code.code.size());
  } else {
    operands(i, split_operands(begin + 1, end), i.line);
    const auto last = token(end - 1).text;
    const bool clock = last == "%clock64" || last == "%clock" || last == "%globaltimer";
    if (clock && i.op != Op::kMov) refuse(i.line, "clock is supported in mov only", text_of(whole, end));
    i.reads_clock = clock;
  }
  if (!bind(i)) refuse(i.line, "instruction is not supported with these types", text_of(whole, end));
  i.kind = kind_of(i);
  code.has_fences |= i.acquires || i.releases;
  code.texts.push_back(text_of(whole, end));
  code.code.push_back(i);
}

// call (result), name, (argument, ...): the function's parameters are the caller's variables.
void Decoder::call(std::size_t begin, std::size_t end) {
  const auto spans = split_operands(begin, end);
  auto names = [&](Span span) {
    std::vector<const Token*> list;
    for (std::size_t at = span.first; at < span.second; ++at)
      if (token(at).text != "(" && token(at).text != ")" && token(at).text != ",") list.push_back(&token(at));
    return list;
  };
  std::vector<const Token*> results, arguments;
  std::size_t n = 0;
  if (n < spans.size() && token(spans[n].first).text == "(") results = names(spans[n++]);
  if (n >= spans.size()) refuse(token(begin).line, "call without a function", text_of(begin, end));
  const Token& name = token(spans[n++].first);
  if (n < spans.size()) arguments = names(spans[n++]);
  const auto found = module.functions.find(name.text);
  if (found == module.functions.end() || found->second.body.text.empty())
    refuse(name.line, "unknown function", name.text);
  const Function& function = found->second;
  if (results.size() != function.results.size() || arguments.size() != function.params.size()) {
    refuse(name.line, "call with another number of parameters than the function has", name.text);
  }
  Scope scope;
  auto bind_names = [&](const std::vector<const Token*>& from, const std::vector<Param>& to) {
    for (std::size_t p = 0; p < from.size(); ++p) {
      std::size_t at = 0;
      if (!find_local(from[p]->text, at)) refuse(from[p]->line, "unknown parameter of a call", from[p]->text);
      scope.local[to[p].name] = at;
    }
  };
  bind_names(results, function.results);
  bind_names(arguments, function.params);
  body(function, std::move(scope));
}

void Decoder::finish() {
  kernel.static_shared_bytes = (kernel.static_shared_bytes + 15) / 16 * 16;
  for (const auto& [at, width] : dynamic_constants) {
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t value = 0;
      std::memcpy(&value, &code.constants[at + lane * width], width);
      value += kernel.static_shared_bytes;
      std::memcpy(&code.constants[at + lane * width], &value, width);
    }
  }
  kernel.local_bytes = (kernel.local_bytes + 15) / 16 * 16;
}

std::unique_ptr<Kernel> decode_kernel(const ModuleText& module, const Function& function) {
  auto kernel = std::make_unique<Kernel>();
  auto code = std::make_shared<KernelCode>();
  kernel->name = function.name;
  kernel->params = function.params;
  if (!function.params.empty()) kernel->param_bytes = function.params.back().offset + function.params.back().bytes;
  kernel->max_threads = function.max_threads;
  kernel->required_threads = function.required_threads;
  Decoder decoder{module, *kernel, *code};
  code->carry = code->register_bytes;
  code->register_bytes += 32;
  try {
    decoder.body(function, {});
    decoder.finish();
  } catch (const PtxError& e) {
    throw PtxError(std::string(e.what()) + " (kernel " + function.name + ")");
  }
  kernel->code = std::move(code);
  return kernel;
}

} // namespace triax::gpu_stand_in
