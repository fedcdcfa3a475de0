// SPDX-License-Identifier: Apache-2.0
// Attention kernels for one element type, and their launches.
//
// Threads: any. Ownership: all memory is the caller's. Blocking: never. Errors: Error if CUDA rejects the launch.
//
// A block needs more shared memory than the default 48 KiB (at most 137 KiB; sm_80 has 163 KiB). Every launch sets the
// attribute, because it belongs to the context of the current device.
#pragma once

#include "attention_backward.hpp"
#include "attention_forward.hpp"
#include "attention_kernels.hpp"
#include "attention_keys.hpp"
#include "attention_machine.cuh"
#include "triax/cuda/check.hpp"
#include "triax/cuda/launch.hpp"

namespace triax::kernels_fused {

template <class Size>
__global__ void __launch_bounds__(Size::kThreads, Size::kBlocks)
    forward_kernel(const __grid_constant__ Attention attention) {
  GpuMachine machine;
  attention_forward<Size>(machine, attention);
}
template <class T>
__global__ void __launch_bounds__(cuda::kThreads)
    delta_kernel(const __grid_constant__ Attention attention, const __grid_constant__ AttentionGradients gradients) {
  GpuMachine machine;
  attention_delta<T>(machine, attention, gradients);
}
template <class Size>
__global__ void __launch_bounds__(Size::kThreads, Size::kBlocks)
    queries_kernel(const __grid_constant__ Attention attention, const __grid_constant__ AttentionGradients gradients) {
  GpuMachine machine;
  attention_queries<Size>(machine, attention, gradients);
}
template <class Size>
__global__ void __launch_bounds__(Size::kThreads, Size::kBlocks)
    keys_kernel(const __grid_constant__ Attention attention, const __grid_constant__ AttentionGradients gradients) {
  GpuMachine machine;
  attention_keys<Size>(machine, attention, gradients);
}

template <class... Params, class... Args>
void launch_tiles(void (*kernel)(Params...), std::int64_t blocks, int threads, std::size_t shared, cudaStream_t stream,
                  const Args&... args) {
  if (blocks == 0) return;
  TRIAX_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared, stream>>>(args...);
  TRIAX_CUDA_LAUNCHED("attention");
}

template <class T>
void run_forward(const Attention& attention, cudaStream_t stream) {
  with_width(attention.size.width, [&](auto width) {
    using Size = typename TilesFor<T, width()>::Forward;
    launch_tiles(forward_kernel<Size>, query_blocks<Size>(attention.size), Size::kThreads, kForwardShared<Size>, stream,
                 attention);
  });
}

template <class T>
void run_backward(const Attention& attention, const AttentionGradients& gradients, cudaStream_t stream) {
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const auto grid = cuda::grid_of_rows(tiles_of(rows, cuda::kThreads / 32 * rows_of_delta<T>(size.width)));
  launch_tiles(delta_kernel<T>, rows == 0 ? 0 : grid.blocks, static_cast<int>(grid.threads), 0, stream, attention,
               gradients);
  with_width(size.width, [&](auto width) {
    using Queries = typename TilesFor<T, width()>::Queries;
    using Keys = typename TilesFor<T, width()>::Keys;
    launch_tiles(queries_kernel<Queries>, query_blocks<Queries>(size), Queries::kThreads, kQueriesShared<Queries>,
                 stream, attention, gradients);
    launch_tiles(keys_kernel<Keys>, key_blocks<Keys>(size), Keys::kThreads, kKeysShared<Keys>, stream, attention,
                 gradients);
  });
}

} // namespace triax::kernels_fused
