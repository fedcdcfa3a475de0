// SPDX-License-Identifier: Apache-2.0
// Activations and their derivatives, for kernels.
//
// Threads: pure functions of the calling thread. Ownership, blocking, errors: none.
#pragma once

#include <cmath>

namespace triax::cuda {

/// Coefficients of the tanh form of GELU.
/// @{
inline constexpr float kGeluCubic = 0.044715f;
inline constexpr float kGeluSlope = 0.7978845608028654f; // sqrt(2 / pi)
/// @}

/// GELU (tanh form), its derivative, and the logistic function.
/// @{
__device__ inline float gelu(float x) {
  return 0.5f * x * (1 + tanhf(kGeluSlope * (x + kGeluCubic * x * x * x)));
}
__device__ inline float gelu_derivative(float x) {
  const float t = tanhf(kGeluSlope * (x + kGeluCubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kGeluSlope * (1 + 3 * kGeluCubic * x * x);
}
__device__ inline float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}
/// @}

} // namespace triax::cuda
