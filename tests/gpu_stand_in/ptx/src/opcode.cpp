// SPDX-License-Identifier: Apache-2.0
// Reads an opcode with its modifiers. What is not listed here is refused by name.
#include "opcode.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "lexer.hpp"

namespace triax::gpu_stand_in {

namespace {

struct Known {
  Op op;
  std::string_view modifiers; // that need no more than a look here or in apply()
};

constexpr std::string_view kFloatModifiers = "rn rz rm rp ftz sat";
constexpr std::string_view kLoadModifiers =
    "global shared local param volatile relaxed acquire weak gpu sys cta nc ca cg cs lu cv v2 v4 L1::no_allocate "
    "L1::evict_last L1::evict_first L2::128B L2::64B L2::256B";
constexpr std::string_view kStoreModifiers =
    "global shared local param volatile relaxed release weak gpu sys cta cg cs wb wt v2 v4 L1::no_allocate "
    "L1::evict_last L1::evict_first";
constexpr std::string_view kAtomicModifiers =
    "global shared add inc dec exch cas min max and or xor relaxed acquire release acq_rel gpu sys cta rn";

const std::map<std::string_view, Known>& known_opcodes() {
  static const std::map<std::string_view, Known> known = {
      {"mov", {Op::kMov, ""}},
      {"cvt", {Op::kCvt, "rn rz rm rp rni rzi rmi rpi ftz sat"}},
      {"add", {Op::kAdd, "rn rz rm rp ftz sat cc"}},
      {"addc", {Op::kAdd, "cc"}},
      {"sub", {Op::kSub, "rn rz rm rp ftz sat cc"}},
      {"subc", {Op::kSub, "cc"}},
      {"mul", {Op::kMul, "rn rz rm rp ftz sat lo hi wide"}},
      {"mad", {Op::kMad, "rn rz rm rp ftz sat lo hi wide cc"}},
      {"madc", {Op::kMad, "lo hi cc"}},
      {"fma", {Op::kFma, kFloatModifiers}},
      {"div", {Op::kDiv, "rn rz rm rp ftz approx full"}},
      {"rem", {Op::kRem, ""}},
      {"min", {Op::kMin, "ftz"}},
      {"max", {Op::kMax, "ftz"}},
      {"abs", {Op::kAbs, ""}},
      {"neg", {Op::kNeg, ""}},
      {"and", {Op::kAnd, ""}},
      {"or", {Op::kOr, ""}},
      {"xor", {Op::kXor, ""}},
      {"not", {Op::kNot, ""}},
      {"shl", {Op::kShl, ""}},
      {"shr", {Op::kShr, ""}},
      {"brev", {Op::kBrev, ""}},
      {"bfind", {Op::kBfind, "shiftamt"}},
      {"bfi", {Op::kBfi, ""}},
      {"bfe", {Op::kBfe, ""}},
      {"prmt", {Op::kPrmt, ""}},
      {"clz", {Op::kClz, ""}},
      {"popc", {Op::kPopc, ""}},
      {"lop3", {Op::kLop3, ""}},
      {"shf", {Op::kShf, "l r clamp wrap"}},
      {"setp", {Op::kSetp, "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan ftz"}},
      {"selp", {Op::kSelp, ""}},
      {"ld", {Op::kLd, kLoadModifiers}},
      {"st", {Op::kSt, kStoreModifiers}},
      {"cvta", {Op::kCvta, "to global shared local"}},
      {"shfl", {Op::kShfl, "sync up down bfly idx"}},
      {"vote", {Op::kVote, "sync any all uni ballot"}},
      {"activemask", {Op::kActivemask, ""}},
      {"bar", {Op::kBar, "sync arrive red and or popc warp cta"}},
      {"barrier", {Op::kBar, "sync arrive red and or popc cta aligned"}},
      {"mma", {Op::kMma, "sync aligned m16n8k16 row col"}},
      {"ldmatrix", {Op::kLdmatrix, "sync aligned m8n8 x1 x2 x4 trans shared"}},
      {"cp", {Op::kCpAsync, "async ca cg shared global wait_all wait_group commit_group L2::128B L2::64B L2::256B"}},
      {"bra", {Op::kBra, "uni"}},
      {"ret", {Op::kExit, "uni"}},
      {"exit", {Op::kExit, ""}},
      {"sqrt", {Op::kSqrt, "rn rz rm rp approx ftz"}},
      {"rsqrt", {Op::kRsqrt, "approx ftz"}},
      {"ex2", {Op::kEx2, "approx ftz"}},
      {"lg2", {Op::kLg2, "approx ftz"}},
      {"sin", {Op::kSin, "approx ftz"}},
      {"cos", {Op::kCos, "approx ftz"}},
      {"tanh", {Op::kTanh, "approx"}},
      {"rcp", {Op::kRcp, "rn rz rm rp approx ftz"}},
      {"copysign", {Op::kCopysign, ""}},
      {"trap", {Op::kTrap, ""}},
      {"membar", {Op::kFence, "gl sys cta"}},
      {"fence", {Op::kFence, "acq_rel sc gpu sys cta"}},
      {"nanosleep", {Op::kNop, ""}},
      {"atom", {Op::kAtom, kAtomicModifiers}},
      {"red", {Op::kAtom, kAtomicModifiers}}};
  return known;
}

std::vector<std::string_view> parts_of(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (!opcode.empty()) {
    const auto dot = std::min(opcode.find('.'), opcode.size());
    parts.push_back(opcode.substr(0, dot));
    opcode.remove_prefix(std::min(dot + 1, opcode.size()));
  }
  return parts;
}

bool lists(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const auto end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

template <class Value>
bool find_in(const std::map<std::string_view, Value>& table, std::string_view word, Value& value) {
  const auto found = table.find(word);
  if (found != table.end()) value = found->second;
  return found != table.end();
}

// Modifiers that mean the same wherever they stand.
void apply(std::string_view word, Instruction& i) {
  static const std::map<std::string_view, Rounding> roundings = {
      {"rn", Rounding::kNearest},  {"rz", Rounding::kZero},  {"rm", Rounding::kDown},  {"rp", Rounding::kUp},
      {"rni", Rounding::kNearest}, {"rzi", Rounding::kZero}, {"rmi", Rounding::kDown}, {"rpi", Rounding::kUp}};
  static const std::map<std::string_view, Space> spaces = {
      {"global", Space::kGlobal}, {"shared", Space::kShared}, {"local", Space::kLocal}, {"param", Space::kParam}};
  if (find_in(roundings, word, i.rounding)) i.integral = word.size() == 3;
  if (i.op != Op::kCpAsync) find_in(spaces, word, i.space);
  if (word == "v2" || word == "x2") i.vec = 2;
  if (word == "v4" || word == "x4") i.vec = 4;
  if (word == "sat") i.saturate = true;
  if (word == "ftz") i.ftz = true;
  if (word == "cc") i.carry_out = true;
  if (word == "trans") i.trans = true;
  if (word == "volatile" || word == "relaxed" || word == "acquire" || word == "release") i.strong = true;
}

void read_barrier(const std::vector<std::string_view>& parts, Instruction& i) {
  auto has = [&](std::string_view word) { return std::find(parts.begin(), parts.end(), word) != parts.end(); };
  if (has("warp")) i.op = Op::kBarWarp;
  i.aligned = parts[0] == "bar" || has("aligned");
  const Barrier kind = has("arrive") ? Barrier::kArrive
                       : !has("red") ? Barrier::kSync
                       : has("and")  ? Barrier::kRedAnd
                       : has("or")   ? Barrier::kRedOr
                                     : Barrier::kRedPopc;
  i.sub = static_cast<std::uint8_t>(kind);
}

void choose(const std::vector<std::string_view>& parts, std::string_view opcode, unsigned line, Instruction& i) {
  static const std::map<std::string_view, Compare> compares = {
      {"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},   {"le", Compare::kLe},
      {"gt", Compare::kGt},   {"ge", Compare::kGe},   {"lo", Compare::kLt},   {"ls", Compare::kLe},
      {"hi", Compare::kGt},   {"hs", Compare::kGe},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
      {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu}, {"geu", Compare::kGeu},
      {"num", Compare::kNum}, {"nan", Compare::kNan}};
  static const std::map<std::string_view, Shuffle> shuffles = {
      {"up", Shuffle::kUp}, {"down", Shuffle::kDown}, {"bfly", Shuffle::kBfly}, {"idx", Shuffle::kIdx}};
  static const std::map<std::string_view, Vote> votes = {
      {"any", Vote::kAny}, {"all", Vote::kAll}, {"uni", Vote::kUni}, {"ballot", Vote::kBallot}};
  static const std::map<std::string_view, Atomic> atomics = {
      {"add", Atomic::kAdd}, {"inc", Atomic::kInc}, {"dec", Atomic::kDec}, {"exch", Atomic::kExch},
      {"cas", Atomic::kCas}, {"min", Atomic::kMin}, {"max", Atomic::kMax}, {"and", Atomic::kAnd},
      {"or", Atomic::kOr},   {"xor", Atomic::kXor}};
  auto has = [&](std::string_view word) { return std::find(parts.begin(), parts.end(), word) != parts.end(); };
  auto pick = [&](const auto& table) {
    int found = 0;
    for (std::size_t n = 1; n < parts.size(); ++n) {
      if (const auto at = table.find(parts[n]); at != table.end()) {
        i.sub = static_cast<std::uint8_t>(at->second);
        ++found;
      }
    }
    if (found != 1) refuse(line, "instruction needs exactly one operation", opcode);
  };
  switch (i.op) {
    case Op::kMul:
      if (!is_float(i.type)) i.op = has("wide") ? Op::kMulWide : has("hi") ? Op::kMulHi : Op::kMul;
      break;
    case Op::kMad:
      i.op = is_float(i.type) ? Op::kFma : has("wide") ? Op::kMadWide : has("hi") ? Op::kMadHi : Op::kMad;
      break;
    case Op::kSetp:
      pick(compares);
      break;
    case Op::kShfl:
      pick(shuffles);
      break;
    case Op::kVote:
      pick(votes);
      break;
    case Op::kAtom:
      pick(atomics);
      i.optional_result = parts[0] == "red";
      break;
    case Op::kBar:
      read_barrier(parts, i);
      break;
    case Op::kCvta:
      i.sub = has("to");
      break;
    case Op::kBfind:
      i.sub = has("shiftamt");
      break;
    case Op::kShf:
      i.sub = static_cast<std::uint8_t>(has("r") | has("clamp") << 1);
      break;
    case Op::kCpAsync:
      if (has("commit_group")) i.op = Op::kCpCommit;
      if (has("wait_group") || has("wait_all")) {
        i.op = Op::kCpWait;
        i.sub = has("wait_all");
      }
      break;
    default:
      break;
  }
  if ((i.op == Op::kShfl || i.op == Op::kVote) && !has("sync"))
    refuse(line, "instruction without .sync is not supported", opcode);
  const bool between_blocks = !has("cta"), both = i.op == Op::kFence || has("acq_rel");
  i.acquires = between_blocks && (both || has("acquire"));
  i.releases = between_blocks && (both || has("release"));
  i.carry_in = parts[0] == "addc" || parts[0] == "subc" || parts[0] == "madc";
}

} // namespace

void read_opcode(std::string_view opcode, unsigned line, Instruction& i) {
  const auto parts = parts_of(opcode);
  const auto known = known_opcodes().find(parts[0]);
  if (known == known_opcodes().end()) refuse(line, "unknown instruction", opcode);
  i.op = known->second.op;
  int types = 0;
  for (std::size_t n = 1; n < parts.size(); ++n) {
    if (const Type type = type_named(parts[n]); type != Type::kNone) {
      if (++types == 1) i.type = type;
      if (types == 2) i.type2 = type;
      continue;
    }
    if (!lists(known->second.modifiers, parts[n])) refuse(line, "unknown modifier ." + std::string(parts[n]), opcode);
    apply(parts[n], i);
  }
  if (i.op == Op::kMma) {
    const auto tail = opcode.substr(std::min(opcode.size(), std::string_view("mma.").size()));
    if (tail != "sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" &&
        tail != "sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") {
      refuse(line, "unknown shape or types of a matrix product", opcode);
    }
  } else if (types > (i.op == Op::kCvt ? 2 : 1)) {
    refuse(line, "more types than the instruction takes", opcode);
  }
  choose(parts, opcode, line, i);
}

} // namespace triax::gpu_stand_in
