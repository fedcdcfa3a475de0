// SPDX-License-Identifier: Apache-2.0
// Exponentials in the base that is fastest for a type: e for f32, and 2 for 16-bit types (ex2.approx, PTX ISA 7.0).
//
// exp(x) is exp_in_base<T>(x * kLogOfE<T>), where the factor is often part of another one. A logarithm in this base,
// times kLnOfBase<T>, is a natural one.
#pragma once

#include <type_traits>

namespace triax::kernels_fused {

/// e^x for f32, 2^x for 16-bit types.
template <class T>
__device__ __forceinline__ float exp_in_base(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return expf(x);
  } else {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
}
/// The logarithm of e in this base, and the natural logarithm of the base.
/// @{
template <class T>
inline constexpr float kLogOfE = std::is_same_v<T, float> ? 1.0f : 1.4426950408889634f;
template <class T>
inline constexpr float kLnOfBase = std::is_same_v<T, float> ? 1.0f : 0.6931471805599453f;
/// @}

} // namespace triax::kernels_fused
