// Copies, fills, conversions and sums on the GPU: the launchers of movement.cu.
//
// Threads: the rank's main thread. Ownership: the caller's views, of device memory. Blocking: never; they launch.
// Errors: Error from a launch. Views were checked (device/movement.hpp) and are not empty.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "triax/tensor.hpp"

namespace triax::cuda {

/// Strided views of one type.
void launch_copy(const TensorView& to, const TensorView& from, cudaStream_t stream);
/// `element`: the bits of one element, lowest bytes first.
void launch_fill(const TensorView& to, std::uint64_t element, cudaStream_t stream);
void launch_convert(const TensorView& to, const TensorView& from, cudaStream_t stream);
void launch_add(const TensorView& to, const TensorView& from, cudaStream_t stream);

} // namespace triax::cuda
