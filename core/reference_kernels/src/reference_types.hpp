// SPDX-License-Identifier: Apache-2.0
// Element types and rows of the reference operations.
#pragma once

#include <cstdint>

#include "triax/element_type.hpp"
#include "triax/error.hpp"
#include "triax/precision.hpp"
#include "triax/tensor.hpp"

namespace triax::reference_kernels {

/// Calls body(T{}), where T is the C++ type of `type`.
template <class Body>
void by_type(DType type, Body&& body) {
  if (!with_type_among<float, double>(type, body))
    throw Error(text("the reference operations compute in fp32 and fp64, not in {}", precision_name(type)));
}

/// Number of rows of a view seen as [rows, last dimension].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

} // namespace triax::reference_kernels
