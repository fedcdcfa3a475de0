// SPDX-License-Identifier: Apache-2.0
// Launches a kernel by a function call, whose error the caller gets.
//
//   check_launch("add", launch_kernel(add<float>, grid_of_elements(count), stream, y, a, b, count));
//
// Host threads: any. Ownership: none. Blocking: never. Errors: launch_kernel() returns CUDA's error code, which the
// caller must check; check_launch() throws it as Error.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/launch.hpp"

namespace triax::cuda {

/// Dynamic shared memory of a block that every kernel may have. A kernel gets more of it by an attribute.
inline constexpr std::size_t kDefaultSharedLimit = 48 * 1024;

/// Launches a kernel; nothing if the grid has no blocks. Does not throw: pass the result to check_launch().
template <class... Parameters, class... Args>
[[nodiscard]] cudaError_t launch_kernel(void (*kernel)(Parameters...), Grid grid, cudaStream_t stream,
                                        const Args&... args) {
  if (grid.blocks == 0) return cudaSuccess;
  if (grid.shared_bytes > kDefaultSharedLimit) { // for every launch: the attribute is of the current device's context
    const cudaError_t error =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grid.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

/// Throws Error with the kernel and the caller's file and line if a launch failed.
inline void check_launch(std::string_view kernel, cudaError_t error,
                         std::source_location where = std::source_location::current()) {
  if (error != cudaSuccess)
    fail(error, ("kernel " + std::string(kernel)).c_str(), where.file_name(), static_cast<int>(where.line()));
}

} // namespace triax::cuda
