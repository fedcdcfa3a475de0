// SPDX-License-Identifier: Apache-2.0
// Newton-Schulz iteration (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): it brings
// the singular values of a matrix X = U S V^T, divided by its Frobenius norm, near 1, so that the result is about U
// V^T.
//
//   X = (a I + b A + c A A) X with A = X X^T, or X = X (a I + b A + c A A) with A = X^T X, which is equal
//
// The products are operations of the kernel set. With ranks that have parts of the matrices, the squares of the norm
// and each A are added over them: one all-reduce of a matrix as large as the smaller side of most weights.
#pragma once

#include <cstddef>
#include <span>
#include <triax/optimizer.hpp>

#include "matrix_batch.hpp"

namespace triax::optim_muon {

/// Scratch memory for the matrices of one parameter. Views have no data in a dry run.
struct Workspace {
  TensorView x, next;          // the part that this rank has of each matrix
  TensorView gram, polynomial; // of each matrix
  TensorView squares;          // f64, of each matrix
};

std::size_t workspace_bytes(const MatrixBatch& of, DType dtype);
/// Each view is aligned to 256 bytes from the start of `scratch`, so that products have the same bits in every layout.
Workspace workspace_of(const MatrixBatch& of, DType dtype, std::span<std::byte> scratch);

/// Iterates on the matrices of `x`, in place of which the result may be in `next`: returns the view that has it. All
/// ranks of MatrixBatch::axis call it together.
TensorView orthogonalize(const MatrixBatch& of, const Workspace& work, int steps, const StepArgs& args,
                         KernelSet& kernels);

} // namespace triax::optim_muon
