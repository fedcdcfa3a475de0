// SPDX-License-Identifier: Apache-2.0
// Binds instructions to the functions of the instruction set that this processor has, and sets rounding modes.
#include <xmmintrin.h>

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

bool depends_on_mode(const Instruction& i) {
  if (i.integral || i.rounding == Rounding::kNone || i.rounding == Rounding::kNearest) return false;
  return i.op != Op::kCvt || i.type == Type::kF32 || i.type == Type::kF64;
}

} // namespace

bool bind(Instruction& i) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  i.run = has_avx2 ? avx2::choose(i) : baseline::choose(i);
  if (!i.run) return false;
  if (depends_on_mode(i)) {
    i.inner = i.run;
    i.run = with_rounding;
  }
  return true;
}

} // namespace triax::gpu_stand_in
