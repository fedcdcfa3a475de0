// SPDX-License-Identifier: Apache-2.0
// Dispatch from a view's dtype to the C++ type that a kernel is instantiated for.
//
// Threads: any. Ownership: none. Blocking: never. Errors: Error with the type if no kernels exist for it.
#pragma once

#include <cstdint>

#include "triax/cuda/rounding.hpp"
#include "triax/element_type.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

/// Calls body(T{}), where T is the C++ type of `type`.
template <class Body>
void by_type(DType type, Body body) {
  if (!with_type_among<float, Bf16, F16>(type, body))
    throw Error(text("kernels on GPUs compute in f32, bf16 and f16, not in {}", name_of(type)));
}

/// Calls body(T{}, To{}) with the types of the data and of the target of a sum, which has the same type or f32.
template <class Body>
void by_types(DType data, DType to, Body body) {
  by_type(data, [&]<class T>(T zero) {
    if (to == data) return body(zero, zero);
    if (to == DType::f32) return body(zero, float{});
    throw Error(text("kernels on GPUs add {} to the same type or to f32, not to {}", name_of(data), name_of(to)));
  });
}

/// Number of rows of a view seen as [rows, last].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

} // namespace triax::cuda
