// SPDX-License-Identifier: Apache-2.0
// Launches a kernel of attention.
//
// Threads: any. Ownership: none. Blocking: never. Errors: Error if CUDA rejects the launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/cuda/check.hpp"
#include "triax/cuda/launch.hpp"

namespace triax::kernels_fused {

/// A block needs up to 137 KiB of shared memory, more than the default of 48 KiB (sm_80 has 163 KiB). Every launch sets
/// the attribute, because it belongs to the context of the current device.
template <class... Params, class... Args>
void launch_tiles(void (*kernel)(Params...), std::int64_t blocks, unsigned threads, std::size_t shared_bytes,
                  cudaStream_t stream, const Args&... args) {
  if (blocks == 0) return;
  TRIAX_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(args...);
  TRIAX_CUDA_LAUNCHED("attention");
}

} // namespace triax::kernels_fused
