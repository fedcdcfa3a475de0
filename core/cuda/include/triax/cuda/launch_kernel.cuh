// SPDX-License-Identifier: Apache-2.0
// Launches a kernel by a function call, whose error the caller gets.
//
//   TRIAX_CUDA(launch_kernel(add<float>, grid_of_elements(count), stream, y, a, b, count));
//
// Host threads: any. Ownership: none. Blocking: never. Errors: returns CUDA's error code, which the caller must check.
#pragma once

#include <cuda_runtime.h>

#include "triax/cuda/launch.hpp"

namespace triax::cuda {

template <class... Parameters, class... Args>
[[nodiscard]] cudaError_t launch_kernel(void (*kernel)(Parameters...), Grid grid, cudaStream_t stream,
                                        const Args&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

} // namespace triax::cuda
