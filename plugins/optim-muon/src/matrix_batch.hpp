// SPDX-License-Identifier: Apache-2.0
// A parameter as matrices: its last two dimensions are those of a matrix, and the dimensions before them count
// matrices. So the parts of a fused weight [parts, out, in] are separate matrices.
//
// Ranks may have some rows, or some columns, of each matrix. Muon's iteration needs a matrix only through its Gram
// matrix, a sum over rows (X^T X) or over columns (X X^T). If it is the sum over the dimension that is cut, ranks add
// their Gram matrices, and no rank needs a whole matrix.
#pragma once

#include <cstdint>
#include <string_view>
#include <triax/layout.hpp>
#include <triax/model.hpp>

namespace triax::optim_muon {

struct MatrixBatch {
  std::int64_t count = 1;                           // matrices that this rank has a part of
  std::int64_t rows = 0, columns = 0;               // of that part, without padding
  std::int64_t global_rows = 0, global_columns = 0; // of a whole matrix
  std::string_view axis = {}; // whose ranks have other rows or columns; empty: none. Valid as long as the ParamSpec
  bool adds_rows = false;     // the Gram matrix is X^T X; false: X X^T

  std::int64_t elements() const { return count * rows * columns; }
  /// Rows and columns of a Gram matrix, the same on all ranks of the axis.
  std::int64_t gram() const { return adds_rows ? columns : rows; }
};

/// Whether the parameter has matrices: two dimensions of more than one element, and weight decay, which biases do not
/// have.
bool has_matrices(const ParamSpec& spec);

/// Throws Error if two axes cut a matrix, one its rows and one its columns.
MatrixBatch matrices_of(const ParamSpec& spec, const Layout& layout);

} // namespace triax::optim_muon
