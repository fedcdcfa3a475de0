// SPDX-License-Identifier: Apache-2.0
// Chooses the function that runs an instruction.
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

bool floating(const Instruction& i) {
  return i.type == Type::kF32 || i.type == Type::kF64;
}

} // namespace

Execute choose(const Instruction& i) {
  switch (i.op) {
    case Op::kMov:
      return choose_move(i);
    case Op::kCvt:
      return choose_convert(i);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMin:
    case Op::kMax:
    case Op::kAbs:
    case Op::kNeg:
      return floating(i) ? choose_float(i) : choose_integer(i);
    case Op::kFma:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kEx2:
    case Op::kLg2:
    case Op::kRcp:
    case Op::kSin:
    case Op::kCos:
    case Op::kCopysign:
    case Op::kTanh:
      return choose_float(i);
    case Op::kMulHi:
    case Op::kMulWide:
    case Op::kMad:
    case Op::kMadHi:
    case Op::kMadWide:
    case Op::kRem:
      return choose_integer(i);
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
    case Op::kShl:
    case Op::kShr:
    case Op::kBrev:
    case Op::kBfind:
    case Op::kBfi:
    case Op::kBfe:
    case Op::kPrmt:
    case Op::kClz:
    case Op::kPopc:
    case Op::kLop3:
    case Op::kShf:
    case Op::kSelp:
      return choose_bits(i);
    case Op::kSetp:
      return choose_compare(i);
    case Op::kLd:
    case Op::kSt:
    case Op::kCvta:
      return choose_access(i);
    case Op::kAtom:
      return choose_atomic(i);
    case Op::kCpAsync:
    case Op::kCpCommit:
    case Op::kCpWait:
      return choose_copy(i);
    case Op::kMma:
    case Op::kLdmatrix:
      return choose_matrix(i);
    default:
      return choose_warp(i);
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
