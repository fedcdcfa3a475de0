// SPDX-License-Identifier: Apache-2.0
// Copy, fill, convert and add on the GPU: functions that launch the kernels of cuda_movement.cu.
//
// Views are in device memory, were checked (device/movement.hpp) and are not empty. Errors: Error for a failed launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "triax/tensor.hpp"

namespace triax::cuda {

/// For strided views of equal types.
void launch_copy(const TensorView& to, const TensorView& from, cudaStream_t stream);
/// `element`: the bits of one element in its lowest bytes.
void launch_fill(const TensorView& to, std::uint64_t element, cudaStream_t stream);
void launch_convert(const TensorView& to, const TensorView& from, cudaStream_t stream);
void launch_add(const TensorView& to, const TensorView& from, cudaStream_t stream);

} // namespace triax::cuda
