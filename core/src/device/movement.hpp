// Copy, fill, convert and add on host memory, for strided views of every dtype.
//
// Threads: any, on memory that no other thread touches. Ownership: the caller's. Blocking: runs inside the call.
#pragma once

#include <string_view>

#include "triax/tensor.hpp"

namespace triax::device {

/// Throws Error naming the movement and both views unless their sizes, and where `same_type` their types, are equal.
void check_movement(std::string_view name, const TensorView& to, const TensorView& from, bool same_type);

/// The same for `to += from`, where f32 takes the 16-bit floating types too.
void check_add(const TensorView& to, const TensorView& from);

void copy_elements(const TensorView& to, const TensorView& from);
void fill_elements(const TensorView& to, double value);
void convert_elements(const TensorView& to, const TensorView& from);
void add_elements(const TensorView& to, const TensorView& from);

} // namespace triax::device
