// SPDX-License-Identifier: Apache-2.0
// Splits a copy between host and device memory into pieces: rows of bytes with a constant pitch for cudaMemcpy2DAsync,
// or one row for cudaMemcpyAsync.
//
// Threads: any. Ownership: values; nothing is allocated, because steps copy. Blocking: never. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

/// The pieces of a copy: none if the views are empty, one if both are contiguous.
class CopyPieces {
 public:
  /// The views must have the same sizes and type.
  CopyPieces(const TensorView& to, const TensorView& from) noexcept;

  std::int64_t count() const noexcept { return count_; }
  CopyPiece operator[](std::int64_t number) const noexcept;

 private:
  struct Dim {
    std::int64_t size = 1, to = 1, from = 1; // strides in elements
  };
  /// Leaves out dimensions of size 1 and joins dimensions that are adjacent in both views.
  void join_dims(const TensorView& to, const TensorView& from) noexcept;

  std::array<Dim, kMaxRank + 1> dims_;    // innermost first; the first is a row, of one element if strides are not 1
  std::size_t dim_count_ = 1, inner_ = 1; // the inner dimensions are those of a piece; there is a piece per outer index
  Dim rows_;                              // rows of a piece
  std::int64_t element_bytes_ = 0, count_ = 0;
};

} // namespace triax::cuda
