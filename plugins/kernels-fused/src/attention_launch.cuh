// SPDX-License-Identifier: Apache-2.0
// Launches a kernel of attention.
//
// Threads: any. Ownership: none. Blocking: never. Errors: Error if CUDA rejects the launch.
#pragma once

#include "triax/cuda/check.hpp"
#include "triax/cuda/launch_kernel.cuh"

namespace triax::kernels_fused {

/// Shared memory that a block may have on the current GPU.
inline std::size_t max_shared_bytes() {
  int gpu = 0, bytes = 0;
  TRIAX_CUDA(cudaGetDevice(&gpu));
  TRIAX_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu));
  return static_cast<std::size_t>(bytes);
}

/// Every launch with more than the default of 48 KiB sets the attribute, because it belongs to the context of the
/// current device.
template <class... Params, class... Args>
void launch_attention(void (*kernel)(Params...), cuda::Grid grid, cudaStream_t stream, const Args&... args) {
  if (grid.blocks == 0) return;
  if (grid.shared_bytes > 48 * 1024) {
    TRIAX_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared_bytes)));
  }
  cuda::check(cuda::launch_kernel(kernel, grid, stream, args...), "kernel attention", __FILE__, __LINE__);
}

} // namespace triax::kernels_fused
