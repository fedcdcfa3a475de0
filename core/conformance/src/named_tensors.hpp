// SPDX-License-Identifier: Apache-2.0
// Tensors by name, whose bits are compared; and the elements of host tensors as double.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "triax/element_type.hpp"

namespace triax::conformance {

struct TensorBytes {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
};
using Tensors = std::map<std::string, TensorBytes>; // "block 0/weight, m"

TensorBytes bytes_of_tensor(const TensorView& view);

/// Empty, or the first element that differs: "element 5 of block 0/weight, m is 0.5, must be 0.25"; or a tensor that
/// only one has, or whose type or size differs.
std::string difference(const Tensors& got, const Tensors& expected);

/// Sets every element of a contiguous view of a floating type to value(index).
template <class Value>
void set_elements(const TensorView& view, const Value& value) {
  with_type(view.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>)
      for (std::int64_t i = 0; i < view.elements(); ++i) view.as<T>()[i] = T(value(i));
  });
}

std::vector<double> values_of(const TensorView& view);

/// Machine epsilon of the type.
double epsilon_of(DType dtype);
/// Largest magnitude; 0 for none.
double magnitude_of(std::span<const double> values);
/// Empty, or the first element that differs by more than the tolerance: "element 3 is 0.5, must be 0.25 up to 1e-06".
std::string difference(std::span<const double> got, std::span<const double> expected, double tolerance);

} // namespace triax::conformance
