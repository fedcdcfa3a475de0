// SPDX-License-Identifier: Apache-2.0
// Decoded instructions: operands are offsets into a warp's registers or the kernel's constants.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_stand_in/machine.hpp"

namespace triax::gpu_stand_in {

inline constexpr int kLanes = 32;

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kS8,
  kU8,
  kB16,
  kS16,
  kU16,
  kF16,
  kBf16,
  kB32,
  kS32,
  kU32,
  kF32,
  kF16x2,
  kBf16x2,
  kB64,
  kS64,
  kU64,
  kF64
};
Type type_named(std::string_view name); // kNone: no such type
int bytes_of(Type type);
inline bool is_float(Type t) {
  return t == Type::kF16 || t == Type::kBf16 || t == Type::kF32 || t == Type::kF64;
}
inline bool is_signed(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
}

enum class Op : std::uint8_t {
  kMov,
  kCvt,
  kAdd,
  kSub,
  kMul,
  kMulHi,
  kMulWide,
  kMad,
  kMadHi,
  kMadWide,
  kFma,
  kDiv,
  kRem,
  kMin,
  kMax,
  kAbs,
  kNeg,
  kAnd,
  kOr,
  kXor,
  kNot,
  kShl,
  kShr,
  kBrev,
  kBfind,
  kBfi,
  kBfe,
  kPrmt,
  kClz,
  kPopc,
  kLop3,
  kShf,
  kSetp,
  kSelp,
  kLd,
  kSt,
  kCvta,
  kShfl,
  kVote,
  kBar,
  kBarWarp,
  kMma,
  kLdmatrix,
  kCpAsync,
  kCpCommit,
  kCpWait,
  kBra,
  kExit,
  kSqrt,
  kRsqrt,
  kEx2,
  kLg2,
  kRcp,
  kSin,
  kCos,
  kCopysign,
  kTanh,
  kTrap,
  kFence,
  kNop,
  kAtom,
  kActivemask
};

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };
enum class Rounding : std::uint8_t { kNone, kNearest, kZero, kDown, kUp };
enum class Compare : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
enum class Shuffle : std::uint8_t { kUp, kDown, kBfly, kIdx };
enum class Vote : std::uint8_t { kAny, kAll, kUni, kBallot };
enum class Barrier : std::uint8_t { kSync, kArrive, kRedAnd, kRedOr, kRedPopc };
enum class Atomic : std::uint8_t { kAdd, kInc, kDec, kExch, kCas, kMin, kMax, kAnd, kOr, kXor };

struct Ref {
  enum Base : std::uint8_t { kRegister, kConstant, kSink };
  std::uint32_t offset = 0; // of lane 0, in bytes
  Base base = kSink;
  std::uint8_t width = 4; // of a lane: 4 or 8; predicates: one word of 32 bits for all lanes
};

struct Warp;
struct Instruction;
using Execute = void (*)(Warp&, const Instruction&, std::uint32_t lanes);

// What an instruction means for the order in which lanes run.
enum class Control : std::uint8_t { kNone, kBranch, kExit, kBarrier, kSync };

struct alignas(64) Instruction {
  Execute run = nullptr;
  Execute inner = nullptr, narrow = nullptr;        // what changes of the rounding mode and of widths wrap
  std::int64_t displacement = 0, displacement2 = 0; // of addresses
  std::uint32_t line = 0, text = 0;
  std::int32_t predicate = -1; // offset of its register
  std::int32_t target = -1;
  Op op = Op::kNop;
  Control control = Control::kNone;
  InstructionKind kind = InstructionKind::kOther;
  Type type = Type::kNone, type2 = Type::kNone; // result (or only) type; source type of cvt
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNone;
  std::uint8_t vec = 1, sub = 0, count = 0;
  bool negated = false, saturate = false, ftz = false, integral = false, strong = false, optional_result = false;
  bool acquires = false, releases = false; // between blocks
  bool carry_in = false, carry_out = false, trans = false, reads_clock = false, aligned = true;
  std::array<Ref, 14> o{};
};

enum class Special : std::uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kBlocksX,
  kBlocksY,
  kBlocksZ,
  kLane,
  kWarp,
  kLanesLess,
  kLanesUpTo,
  kLanesGreater,
  kLanesFrom,
  kLanesEqual,
  kClock
};
inline bool changes_with_block(Special s) {
  return s == Special::kBlockX || s == Special::kBlockY || s == Special::kBlockZ;
}

struct SpecialRegister {
  std::string name;
  Special what = Special::kClock;
  std::uint32_t offset = 0;
  bool wide = false;
};

struct KernelCode {
  std::vector<Instruction> code;
  std::vector<std::string> texts; // of instructions
  std::uint32_t register_bytes = 0;
  std::uint32_t carry = 0; // register of the carry flag
  bool has_fences = false; // or accesses that acquire or release
  std::vector<std::byte> constants;
  std::vector<SpecialRegister> specials;
  // Registers that hold the address of a module's variable.
  struct Variable {
    std::uint32_t offset;
    const GlobalVariable* variable;
    std::int64_t addend;
  };
  std::vector<Variable> variables;
  std::deque<std::string> names; // of registers, while decoding
};

// Chooses Instruction::run and control. False: the combination of types is not known.
bool bind(Instruction& instruction);

} // namespace triax::gpu_stand_in
