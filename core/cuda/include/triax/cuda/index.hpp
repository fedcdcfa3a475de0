// SPDX-License-Identifier: Apache-2.0
// Offsets of the elements of a strided view, by their number in row order.
//
// Host threads: any. Kernels call these functions, too. Ownership: the memory is the view's. Blocking: never. Errors:
// none.
#pragma once

#include <cstdint>

#include "triax/cuda/host_device.hpp"
#include "triax/tensor.hpp"

namespace triax::cuda {

/// Sizes and strides (in elements) of four dimensions, outermost first; dimensions that a view does not have get size
/// 1.
struct Strided {
  std::int64_t size[kMaxRank] = {1, 1, 1, 1};
  std::int64_t stride[kMaxRank] = {0, 0, 0, 0};
  bool flat = true; // contiguous: the offset of element i is i
};

/// Sizes and strides of a view.
inline Strided strided(const TensorView& view) {
  Strided out;
  for (int dim = 0; dim < view.rank(); ++dim) {
    const int out_dim = kMaxRank - view.rank() + dim;
    out.size[out_dim] = view.size(dim);
    out.stride[out_dim] = view.stride(dim);
  }
  out.flat = view.contiguous();
  return out;
}

/// Offset of element number `element` from the first element, in elements.
TRIAX_HD inline std::int64_t offset_of(const Strided& view, std::int64_t element) {
  if (view.flat) return element;
  std::int64_t offset = 0;
  for (int dim = kMaxRank - 1; dim >= 0; --dim) {
    offset += element % view.size[dim] * view.stride[dim];
    element /= view.size[dim];
  }
  return offset;
}

} // namespace triax::cuda
