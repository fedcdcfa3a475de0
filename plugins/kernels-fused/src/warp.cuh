// SPDX-License-Identifier: Apache-2.0
// The calling thread's number in its block and in its warp, and its warp's number.
#pragma once

#include "kernel_sizes.hpp"

namespace triax::kernels_fused {

__device__ __forceinline__ int thread_index() {
  return static_cast<int>(threadIdx.x);
}
__device__ __forceinline__ int lane_index() {
  return static_cast<int>(threadIdx.x % kWarpSize);
}
__device__ __forceinline__ int warp_index() {
  return static_cast<int>(threadIdx.x / kWarpSize);
}

} // namespace triax::kernels_fused
