// SPDX-License-Identifier: Apache-2.0
// Splits a copy between host and device memory into pieces: rows of bytes with a constant pitch for cudaMemcpy2DAsync,
// or one row for cudaMemcpyAsync.
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
  std::size_t to_pitch = 0, from_pitch = 0; // distance between rows, at least the width; not used with one row
  bool operator==(const CopyPiece&) const = default;
};

/// The largest pitch of a copy (cudaDeviceProp::memPitch, which is this on every GPU). Rows further apart are one piece
/// each.
inline constexpr std::int64_t kMaxPitchBytes = 0x7FFFFFFF;

/// The views must have the same sizes and type.
std::vector<CopyPiece> copy_pieces(const TensorView& to, const TensorView& from);

} // namespace triax::cuda
