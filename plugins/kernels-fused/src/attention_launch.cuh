// SPDX-License-Identifier: Apache-2.0
// Launches a kernel of attention.
//
// Host threads: any. Ownership: none. Blocking: never. Errors: Error if CUDA rejects the launch.
#pragma once

#include <source_location>
#include <string>

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

/// The name of a kernel, and the caller's file and line, for errors. A string literal converts to it.
struct LaunchName {
  LaunchName(const char* of, std::source_location at = std::source_location::current()) : kernel(of), where(at) {}
  const char* kernel;
  std::source_location where;
};

/// Every launch with more than the default of 48 KiB sets the attribute, because it belongs to the context of the
/// current device.
template <class... Params, class... Args>
void launch_attention(LaunchName name, void (*kernel)(Params...), cuda::Grid grid, cudaStream_t stream,
                      const Args&... args) {
  if (grid.blocks == 0) return;
  if (grid.shared_bytes > 48 * 1024) {
    TRIAX_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared_bytes)));
  }
  if (const cudaError_t error = cuda::launch_kernel(kernel, grid, stream, args...); error != cudaSuccess)
    cuda::fail(error, (std::string("kernel ") + name.kernel).c_str(), name.where.file_name(),
               static_cast<int>(name.where.line()));
}

} // namespace triax::kernels_fused
