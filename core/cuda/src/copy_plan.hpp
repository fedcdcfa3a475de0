// A copy between host and device memory as pieces that one cudaMemcpy2DAsync does each: rows of bytes at even
// distances.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "triax/tensor.hpp"

namespace triax::cuda {

/// All in bytes, from the views' data on.
struct CopyPiece {
  std::int64_t to = 0, from = 0;            // where the first row begins
  std::size_t width = 0, rows = 0;          // of a row; and how many
  std::size_t to_pitch = 0, from_pitch = 0; // from row to row: the width at least
  bool operator==(const CopyPiece&) const = default;
};

/// The views have the same sizes and type.
std::vector<CopyPiece> copy_pieces(const TensorView& to, const TensorView& from);

} // namespace triax::cuda
