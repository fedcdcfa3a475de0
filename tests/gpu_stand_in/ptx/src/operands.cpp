// SPDX-License-Identifier: Apache-2.0
// Operands of instructions: registers, constants, addresses and symbols.
#include <charconv>
#include <cstring>

#include "decode.hpp"

namespace triax::gpu_stand_in {

Type operand_type(const Instruction& i, std::size_t n) {
  switch (i.op) {
    case Op::kSetp:
      return n == 0 ? Type::kPred : i.type;
    case Op::kSelp:
      return n == 3 ? Type::kPred : i.type;
    case Op::kShl:
    case Op::kShr:
      return n == 2 ? Type::kU32 : i.type;
    case Op::kShf:
    case Op::kPrmt:
    case Op::kLop3:
      return Type::kB32;
    case Op::kBfi:
      return n >= 3 ? Type::kU32 : i.type;
    case Op::kBfe:
      return n >= 2 ? Type::kU32 : i.type;
    case Op::kMulWide:
      return n == 0 ? (bytes_of(i.type) == 2 ? Type::kB32 : Type::kB64) : i.type;
    case Op::kMadWide:
      return n == 0 || n == 3 ? (bytes_of(i.type) == 2 ? Type::kB32 : Type::kB64) : i.type;
    case Op::kCvt:
      return n == 0 ? i.type : (i.type2 == Type::kNone ? i.type : i.type2);
    case Op::kShfl:
      return Type::kB32;
    case Op::kVote:
      return n == 1 ? Type::kPred : i.type == Type::kPred && n == 0 ? Type::kPred : Type::kB32;
    case Op::kBar:
      return i.type == Type::kPred && n == 0 ? Type::kPred : Type::kU32;
    case Op::kBarWarp:
    case Op::kCpAsync:
    case Op::kCpWait:
    case Op::kNop:
      return Type::kU32;
    case Op::kBfind:
    case Op::kClz:
    case Op::kPopc:
      return n == 0 ? Type::kU32 : i.type;
    case Op::kMma:
    case Op::kLdmatrix:
      return Type::kB32;
    case Op::kCvta:
      return Type::kU64;
    default:
      return i.type == Type::kNone ? Type::kB32 : i.type;
  }
}

const Decoder::Register* Decoder::find_register(std::string_view name) const {
  const auto& scopes = bodies.back()->scopes;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (const auto found = scope->registers.find(name); found != scope->registers.end()) return &found->second;
  }
  return nullptr;
}

bool Decoder::find_local(std::string_view name, std::size_t& offset) const {
  const auto& scopes = bodies.back()->scopes;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (const auto found = scope->local.find(name); found != scope->local.end()) {
      offset = found->second;
      return true;
    }
  }
  return false;
}

bool Decoder::find_shared(std::string_view name, std::size_t& offset, bool& dynamic) {
  dynamic = false;
  if (const auto found = shared_at.find(name); found != shared_at.end()) {
    offset = found->second;
    return true;
  }
  const auto found = module.shared.find(name);
  if (found == module.shared.end()) return false;
  if (found->second.dynamic) {
    dynamic = true;
    offset = 0;
    return true;
  }
  const std::size_t align = found->second.align;
  offset = kernel.static_shared_bytes = (kernel.static_shared_bytes + align - 1) / align * align;
  kernel.static_shared_bytes += found->second.bytes;
  shared_at[found->first] = offset;
  return true;
}

Ref Decoder::constant(std::uint64_t bits, int width) {
  const auto [at, made] = constants.try_emplace({bits, width}, static_cast<std::uint32_t>(code.constants.size()));
  if (made) {
    code.constants.resize(code.constants.size() + kLanes * width);
    for (int lane = 0; lane < kLanes; ++lane) std::memcpy(&code.constants[at->second + lane * width], &bits, width);
  }
  return {at->second, Ref::kConstant, static_cast<std::uint8_t>(width)};
}

Ref Decoder::special(const Token& name) {
  static constexpr std::pair<std::string_view, Special> known[] = {{"%tid.x", Special::kThreadX},
                                                                   {"%tid.y", Special::kThreadY},
                                                                   {"%tid.z", Special::kThreadZ},
                                                                   {"%ntid.x", Special::kThreadsX},
                                                                   {"%ntid.y", Special::kThreadsY},
                                                                   {"%ntid.z", Special::kThreadsZ},
                                                                   {"%ctaid.x", Special::kBlockX},
                                                                   {"%ctaid.y", Special::kBlockY},
                                                                   {"%ctaid.z", Special::kBlockZ},
                                                                   {"%nctaid.x", Special::kBlocksX},
                                                                   {"%nctaid.y", Special::kBlocksY},
                                                                   {"%nctaid.z", Special::kBlocksZ},
                                                                   {"%laneid", Special::kLane},
                                                                   {"%warpid", Special::kWarp},
                                                                   {"%lanemask_lt", Special::kLanesLess},
                                                                   {"%lanemask_le", Special::kLanesUpTo},
                                                                   {"%lanemask_gt", Special::kLanesGreater},
                                                                   {"%lanemask_ge", Special::kLanesFrom},
                                                                   {"%lanemask_eq", Special::kLanesEqual},
                                                                   {"%clock64", Special::kClock},
                                                                   {"%clock", Special::kClock},
                                                                   {"%globaltimer", Special::kClock}};
  for (const auto& special : code.specials) {
    if (special.name == name.text)
      return {special.offset, Ref::kRegister, static_cast<std::uint8_t>(special.wide ? 8 : 4)};
  }
  for (const auto& [word, what] : known) {
    if (word != name.text) continue;
    const bool wide = word == "%clock64" || word == "%globaltimer";
    code.specials.push_back({std::string(word), what, new_register(wide ? Type::kU64 : Type::kU32), wide});
    return {code.specials.back().offset, Ref::kRegister, static_cast<std::uint8_t>(wide ? 8 : 4)};
  }
  refuse(name.line, "unknown register", name.text);
}

// A symbol: its address in its space.
Ref Decoder::named(const Token& name, std::int64_t addend, Type type) {
  const int width = bytes_of(type) == 8 ? 8 : 4;
  std::size_t offset = 0;
  bool dynamic = false;
  if (name.text == "WARP_SZ") return constant(kLanes, width);
  if (find_local(name.text, offset)) return constant(offset + addend, width);
  if (bodies.size() == 1) {
    for (const Param& p : kernel.params)
      if (p.name == name.text) return constant(p.offset + addend, width);
  }
  if (find_shared(name.text, offset, dynamic)) {
    if (!dynamic) return constant(offset + addend, width);
    const auto at = static_cast<std::uint32_t>(code.constants.size());
    const std::uint64_t bits = static_cast<std::uint64_t>(addend);
    code.constants.resize(at + kLanes * width);
    for (int lane = 0; lane < kLanes; ++lane) std::memcpy(&code.constants[at + lane * width], &bits, width);
    dynamic_constants.push_back({at, width});
    return {at, Ref::kConstant, static_cast<std::uint8_t>(width)};
  }
  for (const GlobalVariable& variable : module.variables) {
    if (variable.name != name.text) continue;
    const std::uint32_t at = new_register(Type::kU64);
    code.variables.push_back({at, &variable, addend});
    return {at, Ref::kRegister, 8};
  }
  refuse(name.line, "unknown symbol", name.text);
}

Ref Decoder::value(Span span, Type type) {
  const Token& first = token(span.first);
  const auto word = first.text;
  const int width = bytes_of(type) == 8 ? 8 : 4;
  if (word == "_") return {};
  if (word == "!") refuse(first.line, "negated operand is not supported", text_of(span.first, span.second));
  if (const Register* r = find_register(word); r && span.second == span.first + 1) {
    if ((r->type == Type::kPred) != (type == Type::kPred))
      refuse(first.line, "predicate where a value stands, or the reverse", word);
    return {r->offset, Ref::kRegister, static_cast<std::uint8_t>(bytes_of(r->type) == 8 ? 8 : 4)};
  }
  if (word[0] == '%') return special(first);
  const bool minus = word == "-";
  const Token& digits = token(span.first + (minus ? 1 : 0));
  const auto text = digits.text;
  if (text.size() > 2 && text[0] == '0' && std::string_view("fFdD").find(text[1]) != std::string_view::npos) {
    const std::string hexadecimal = "0x" + std::string(text.substr(2));
    return constant(read_integer({hexadecimal, digits.line}), text[1] == 'f' || text[1] == 'F' ? 4 : 8);
  }
  if (text[0] >= '0' && text[0] <= '9') {
    std::uint64_t bits = read_integer(digits);
    if (minus) bits = 0 - bits;
    if (type == Type::kPred) return constant(bits != 0 ? ~std::uint32_t{0} : 0, 4);
    return constant(width == 8 ? bits : bytes_of(type) == 2 ? bits & 0xFFFF : bits & 0xFFFFFFFF, width);
  }
  std::int64_t addend = 0;
  if (span.second > span.first + 1) {
    const auto sign = token(span.first + 1).text;
    if (span.second != span.first + 3 || (sign != "+" && sign != "-"))
      refuse(first.line, "unknown operand", text_of(span.first, span.second));
    addend = static_cast<std::int64_t>(read_integer(token(span.first + 2))) * (sign == "-" ? -1 : 1);
  }
  return named(first, addend, type);
}

void Decoder::add(Instruction& i, Ref ref, unsigned line) {
  if (i.count >= i.o.size()) refuse(line, "too many operands", "");
  i.o[i.count++] = ref;
}

// [base], [base+4], [base+-4], [symbol+4]
void Decoder::address(Instruction& i, Span span, bool second) {
  std::size_t at = span.first + 1;
  const std::size_t end = span.second - 1;
  const Token& base = token(at++);
  std::int64_t displacement = 0;
  if (at < end) {
    bool minus = false;
    for (; at < end && (token(at).text == "+" || token(at).text == "-"); ++at) minus ^= token(at).text == "-";
    if (at + 1 != end) refuse(base.line, "unknown address", text_of(span.first, span.second));
    displacement = static_cast<std::int64_t>(read_integer(token(at)));
    if (minus) displacement = -displacement;
  }
  (second ? i.displacement2 : i.displacement) = displacement;
  if (const Register* r = find_register(base.text)) {
    return add(i, {r->offset, Ref::kRegister, static_cast<std::uint8_t>(bytes_of(r->type) == 8 ? 8 : 4)}, base.line);
  }
  std::size_t offset = 0;
  // Parameters of functions and calls lie in local memory.
  if (i.space == Space::kParam && find_local(base.text, offset)) i.space = Space::kLocal;
  add(i, named(base, 0, Type::kU64), base.line);
}

void Decoder::operand(Instruction& i, Span span, Type type) {
  const Token& first = token(span.first);
  if (first.text == "{") {
    for (const Span& part : split_operands(span.first + 1, span.second - 1)) add(i, value(part, type), first.line);
    return;
  }
  if (first.text == "[") return address(i, span, i.op == Op::kCpAsync && i.count > 0);
  // A shuffle's second result: %r1|%p1
  if (span.second == span.first + 3 && token(span.first + 1).text == "|") {
    if (i.op != Op::kShfl) refuse(first.line, "two results are not supported here", text_of(span.first, span.second));
    add(i, value({span.first, span.first + 1}, type), first.line);
    add(i, value({span.first + 2, span.second}, Type::kPred), first.line);
    return;
  }
  const Ref ref = value(span, type);
  // Only these take registers that are wider than their types.
  const bool any_width = i.op == Op::kLd || i.op == Op::kSt || i.op == Op::kCvt || i.op == Op::kMov || i.op == Op::kBar;
  if (!any_width && ref.base == Ref::kRegister && type != Type::kPred && ref.width != (bytes_of(type) == 8 ? 8 : 4)) {
    refuse(first.line, "register of another width than the instruction takes", first.text);
  }
  add(i, ref, first.line);
  if (i.op == Op::kShfl && i.count == 1) add(i, {}, first.line);
}

void Decoder::operands(Instruction& i, const std::vector<Span>& spans, unsigned line) {
  // Loads keep the address first, as stores do.
  const bool load = i.op == Op::kLd || i.op == Op::kLdmatrix || (i.op == Op::kAtom && !i.optional_result);
  if (load && spans.size() < 2) refuse(line, "too few operands", "");
  if (load) operand(i, spans[1], operand_type(i, 1));
  for (std::size_t n = 0; n < spans.size(); ++n) {
    if (load && n == 1) continue;
    if (i.op == Op::kAtom && i.optional_result && n == 1) add(i, {}, line); // red: no result
    const bool vote = i.op == Op::kBar && i.sub >= static_cast<std::uint8_t>(Barrier::kRedAnd) && n + 1 == spans.size();
    const Type type = vote ? Type::kPred : operand_type(i, n);
    const bool list = token(spans[n].first).text == "{";
    if (i.op == Op::kMov && list) {
      const std::size_t parts = split_operands(spans[n].first + 1, spans[n].second - 1).size();
      i.sub = static_cast<std::uint8_t>(n == 0 ? parts : 0x80 | parts);
    }
    operand(i, spans[n], i.op == Op::kMov && list ? Type::kB32 : type);
  }
}

} // namespace triax::gpu_stand_in
