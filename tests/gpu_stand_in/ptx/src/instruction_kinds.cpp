// SPDX-License-Identifier: Apache-2.0
// Kinds of instructions, for counts.
#include "profile.hpp"

namespace triax::gpu_stand_in {

namespace {

InstructionKind kind_of_access(Space space) {
  switch (space) {
    case Space::kShared:
      return InstructionKind::kShared;
    case Space::kLocal:
      return InstructionKind::kLocal;
    case Space::kParam:
      return InstructionKind::kParam;
    default:
      return InstructionKind::kGlobal;
  }
}

// Of operations that exist for integers and for floating-point numbers.
InstructionKind kind_of_arithmetic(Type type) {
  const bool packed = type == Type::kF16x2 || type == Type::kBf16x2;
  return packed || is_float(type) ? InstructionKind::kFloat : InstructionKind::kInteger;
}

} // namespace

InstructionKind kind_of(const Instruction& i) {
  switch (i.op) {
    case Op::kMma:
      return InstructionKind::kMma;
    case Op::kLdmatrix:
      return InstructionKind::kShared;
    case Op::kCpAsync:
      return InstructionKind::kGlobal;
    case Op::kLd:
    case Op::kSt:
    case Op::kAtom:
      return kind_of_access(i.space);
    case Op::kDiv:
      return is_float(i.type) ? InstructionKind::kSpecial : InstructionKind::kInteger;
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kEx2:
    case Op::kLg2:
    case Op::kRcp:
    case Op::kSin:
    case Op::kCos:
    case Op::kTanh:
      return InstructionKind::kSpecial;
    case Op::kCvt:
      return InstructionKind::kConvert;
    case Op::kSetp:
    case Op::kSelp:
      return InstructionKind::kCompare;
    case Op::kMov:
    case Op::kCvta:
      return InstructionKind::kMove;
    case Op::kShfl:
    case Op::kVote:
    case Op::kActivemask:
      return InstructionKind::kWarp;
    case Op::kBar:
    case Op::kBarWarp:
      return InstructionKind::kBarrier;
    case Op::kBra:
    case Op::kExit:
      return InstructionKind::kBranch;
    case Op::kCpCommit:
    case Op::kCpWait:
    case Op::kTrap:
    case Op::kFence:
    case Op::kNop:
      return InstructionKind::kOther;
    default:
      return kind_of_arithmetic(i.type);
  }
}

std::string_view name_of(InstructionKind kind) {
  static constexpr std::array<std::string_view, kInstructionKinds> kNames = {
      "mma",     "global",  "shared", "local", "param",   "float",  "special", "integer",
      "convert", "compare", "move",   "warp",  "barrier", "branch", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

} // namespace triax::gpu_stand_in
