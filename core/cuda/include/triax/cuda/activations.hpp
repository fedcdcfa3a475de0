// SPDX-License-Identifier: Apache-2.0
// Activations and their derivatives, for kernels and for tests on the host.
//
// Threads: pure functions, any thread; also in kernels. Ownership, blocking, errors: none.
#pragma once

#include <cmath>

#include "triax/cuda/host_device.hpp"

namespace triax::cuda {

inline constexpr float kGeluCubic = 0.044715f;
inline constexpr float kGeluSlope = 0.7978845608028654f; // sqrt(2 / pi)

TRIAX_HD inline float gelu(float x) {
  return 0.5f * x * (1 + tanhf(kGeluSlope * (x + kGeluCubic * x * x * x)));
}
TRIAX_HD inline float gelu_derivative(float x) {
  const float t = tanhf(kGeluSlope * (x + kGeluCubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kGeluSlope * (1 + 3 * kGeluCubic * x * x);
}
TRIAX_HD inline float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

} // namespace triax::cuda
