// SPDX-License-Identifier: Apache-2.0
// The rows of the heads of a view [s, b, a, d], whose dimensions may have any strides but the last.
#pragma once

#include <cstdint>

#include "triax/tensor.hpp"

namespace triax::cuda {

/// Strides in elements.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t position, sample, head;
  __device__ T* row(std::int64_t s, std::int64_t b, std::int64_t a) const {
    return data + s * position + b * sample + a * head;
  }
};
template <class T>
HeadRows<T> head_rows(const TensorView& x) {
  return {x.as<T>(), x.stride(0), x.stride(1), x.stride(2)};
}

} // namespace triax::cuda
