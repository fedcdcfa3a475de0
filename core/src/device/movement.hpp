// SPDX-License-Identifier: Apache-2.0
// Copy, fill, convert and add on host memory, for strided views of all dtypes.
//
// Threads: any, on memory that no other thread uses.
#pragma once

#include <string_view>

#include "triax/tensor.hpp"

namespace triax::device {

/// Throws Error if the shapes differ or, with `same_type`, the dtypes. The message names the operation and both views.
void check_movement(std::string_view name, const TensorView& to, const TensorView& from, bool same_type);

/// The same check for `to += from`: f32 also accepts 16-bit floating types.
void check_add(const TensorView& to, const TensorView& from);

void copy_elements(const TensorView& to, const TensorView& from);
void fill_elements(const TensorView& to, double value);
void convert_elements(const TensorView& to, const TensorView& from);
void add_elements(const TensorView& to, const TensorView& from);

} // namespace triax::device
