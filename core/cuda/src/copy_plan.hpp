// SPDX-License-Identifier: Apache-2.0
// Splits a copy between host and device memory into pieces for cudaMemcpy2DAsync: rows of bytes with a constant pitch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "triax/tensor.hpp"

namespace triax::cuda {

/// All values are in bytes; offsets are from the start of each view.
struct CopyPiece {
  std::int64_t to = 0, from = 0;            // offset of the first row
  std::size_t width = 0, rows = 0;          // bytes of a row, number of rows
  std::size_t to_pitch = 0, from_pitch = 0; // distance between rows, at least the width
  bool operator==(const CopyPiece&) const = default;
};

/// The views must have the same sizes and type.
std::vector<CopyPiece> copy_pieces(const TensorView& to, const TensorView& from);

} // namespace triax::cuda
