// SPDX-License-Identifier: Apache-2.0
// Launches a kernel of attention.
#pragma once

#include <cstddef>

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::kernels_fused {

/// Shared memory of a block that every kernel may have.
inline constexpr std::size_t kDefaultSharedLimit = 48 * 1024;

/// Every launch with more than the default limit sets the attribute, because it belongs to the context of the
/// current device.
template <class... Params, class... Args>
void launch_attention(cuda::LaunchSite site, void (*kernel)(Params...), cuda::Grid grid, cudaStream_t stream,
                      const Args&... args) {
  if (grid.blocks == 0) return;
  if (grid.shared_bytes > kDefaultSharedLimit) {
    TRIAX_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared_bytes)));
  }
  cuda::check_launch(site.kernel, cuda::launch_kernel(kernel, grid, stream, args...), site.where);
}

} // namespace triax::kernels_fused
