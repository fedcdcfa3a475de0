// SPDX-License-Identifier: Apache-2.0
// Binds instructions to the functions of the instruction set that this processor has, and sets rounding modes.
#include <xmmintrin.h>

#include <cstdlib>
#include <string_view>

#include "code.hpp"
#include "warp.hpp"

namespace triax::gpu_stand_in {

namespace baseline {
Execute choose(const Instruction& instruction);
}
namespace avx2 {
Execute choose(const Instruction& instruction);
}

namespace {

void with_rounding(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  const unsigned before = _mm_getcsr();
  const unsigned mode = i.rounding == Rounding::kZero   ? _MM_ROUND_TOWARD_ZERO
                        : i.rounding == Rounding::kDown ? _MM_ROUND_DOWN
                                                        : _MM_ROUND_UP;
  _mm_setcsr((before & ~static_cast<unsigned>(_MM_ROUND_MASK)) | mode);
  i.inner(warp, i, lanes);
  _mm_setcsr(before);
}

int lane_bytes(Type type) {
  return bytes_of(type) == 8 ? 8 : 4;
}
Type source_type(const Instruction& i) {
  return i.type2 == Type::kNone ? i.type : i.type2;
}

// cvt between registers that are wider than its types.
void with_widths(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Instruction narrow = i;
  if (i.o[1].width != lane_bytes(source_type(i))) {
    narrow.o[1] = {kNarrowSource, Ref::kSink, static_cast<std::uint8_t>(lane_bytes(source_type(i)))};
    for (int l = 0; l < kLanes; ++l) w.set(narrow.o[1], l, w.value(i.o[1], l));
  }
  const bool widen = i.o[0].width != lane_bytes(i.type);
  if (widen) narrow.o[0] = {kNarrowResult, Ref::kSink, 4};
  i.narrow(w, narrow, lanes);
  if (!widen) return;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const auto low = static_cast<std::uint32_t>(w.value(narrow.o[0], l));
    const std::uint64_t sign = bytes_of(i.type) == 2 ? static_cast<std::uint64_t>(static_cast<std::int16_t>(low))
                                                     : static_cast<std::uint64_t>(static_cast<std::int32_t>(low));
    w.set(i.o[0], l, is_signed(i.type) ? sign : low);
  }
}

bool changes_width(const Instruction& i) {
  if (i.op != Op::kCvt) return false;
  return i.o[1].width != lane_bytes(source_type(i)) || i.o[0].width != lane_bytes(i.type);
}

// Registers must be at least as wide as the types.
bool fits(const Instruction& i) {
  return i.op != Op::kCvt || (i.o[1].width >= lane_bytes(source_type(i)) && i.o[0].width >= lane_bytes(i.type));
}

bool depends_on_mode(const Instruction& i) {
  if (i.integral || i.rounding == Rounding::kNone || i.rounding == Rounding::kNearest) return false;
  return i.op != Op::kCvt || i.type == Type::kF32 || i.type == Type::kF64;
}

// What CMakeLists.txt compiles the namespace avx2 for. TRIAX_GPU_HOST=baseline is for tests of the other.
bool uses_avx2() {
  const char* host = std::getenv("TRIAX_GPU_HOST");
  if (host && std::string_view(host) == "baseline") return false;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("popcnt");
}

Control control_of(Op op) {
  switch (op) {
    case Op::kBra:
      return Control::kBranch;
    case Op::kExit:
      return Control::kExit;
    case Op::kBar:
      return Control::kBarrier;
    case Op::kShfl:
    case Op::kVote:
    case Op::kBarWarp:
    case Op::kMma:
    case Op::kLdmatrix:
      return Control::kSync;
    default:
      return Control::kNone;
  }
}

} // namespace

bool bind(Instruction& i) {
  static const bool has_avx2 = uses_avx2();
  i.run = has_avx2 ? avx2::choose(i) : baseline::choose(i);
  if (!i.run || !fits(i)) return false;
  i.control = control_of(i.op);
  if (depends_on_mode(i)) {
    i.inner = i.run;
    i.run = with_rounding;
  }
  if (changes_width(i)) {
    i.narrow = i.run;
    i.run = with_widths;
  }
  return true;
}

} // namespace triax::gpu_stand_in
