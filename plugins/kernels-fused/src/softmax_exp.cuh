// SPDX-License-Identifier: Apache-2.0
// Exponentials of softmax: expf for f32, and the faster ex2.approx (PTX ISA 7.0) for 16-bit types.
#pragma once

#include <type_traits>

namespace triax::kernels_fused {

/// exp(x) for f32, 2^x for 16-bit types: exp(x) is softmax_exp<T>(x * kSoftmaxLog2e<T>). kSoftmaxLn2 is the inverse.
template <class T>
__device__ __forceinline__ float softmax_exp(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return expf(x);
  } else {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
}
template <class T>
inline constexpr float kSoftmaxLog2e = std::is_same_v<T, float> ? 1.0f : 1.4426950408889634f;
template <class T>
inline constexpr float kSoftmaxLn2 = std::is_same_v<T, float> ? 1.0f : 0.6931471805599453f;

} // namespace triax::kernels_fused
