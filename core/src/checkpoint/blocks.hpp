// SPDX-License-Identifier: Apache-2.0
// Goes through a tensor in blocks of limited size, so that memory does not grow with the tensor, and converts the
// elements of a block.
//
// Threads: pure functions. Errors: those of the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "triax/tensor.hpp"

namespace triax::checkpoint {

inline constexpr std::int64_t kBlockElements = std::int64_t{1} << 20;

/// Calls `body(begin, size)` for boxes of at most kBlockElements elements. In row-major order, the elements of each box
/// follow those of the box before: written one after another, they are the tensor.
void for_each_block(const Shape& shape, const std::function<void(const Shape& begin, const Shape& size)>& body);

/// The values of `out.size()` elements. Integers of more than 53 bits are rounded.
void to_doubles(DType type, const std::byte* from, std::span<double> out);
/// Writes the values as elements of a floating type, rounded once. Returns the number of finite values that the type
/// cannot hold, and that became infinite.
std::size_t from_doubles(std::span<const double> values, DType type, std::byte* to);

} // namespace triax::checkpoint
