// SPDX-License-Identifier: Apache-2.0
// From a DType to the C++ type of its elements, and back.
//
// Threads: any. Ownership, blocking: none. Errors: those of the body.
#pragma once

#include <cstdint>
#include <type_traits>

#include "triax/half.hpp"
#include "triax/tensor.hpp"

namespace triax {

/// dtype_of<float>() is DType::f32.
template <class T>
constexpr DType dtype_of() noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return DType::bf16;
  } else if constexpr (std::is_same_v<T, F16>) {
    return DType::f16;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return DType::i32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return DType::i64;
  } else {
    static_assert(std::is_same_v<T, std::uint8_t>, "not an element type");
    return DType::u8;
  }
}

/// Calls body(T{}) for the T of the list that has this dtype. Returns false if no type of the list has it.
template <class... Ts, class Body>
bool with_type_among(DType dtype, Body&& body) {
  return ((dtype == dtype_of<Ts>() && (body(Ts{}), true)) || ...);
}

/// Calls body(T{}) with the C++ type of the elements.
template <class Body>
void with_type(DType dtype, Body&& body) {
  with_type_among<float, double, Bf16, F16, std::int32_t, std::int64_t, std::uint8_t>(dtype, body);
}

} // namespace triax
