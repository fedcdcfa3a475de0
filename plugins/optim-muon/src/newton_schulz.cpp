// SPDX-License-Identifier: Apache-2.0
#include "newton_schulz.hpp"

#include <cstdint>
#include <triax/communicator.hpp>
#include <triax/error.hpp>
#include <utility>

#include "muon_loops.hpp"

namespace triax::optim_muon {

namespace {

/// The published coefficients: the quintic polynomial that grows small singular values fastest, and keeps all of them
/// within about 0.3 of 1.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

/// The kernel sets have packed products of single matrices, so a batch of one has no batch dimension.
TensorView matrices(void* data, DType dtype, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  return count == 1 ? TensorView(data, dtype, {rows, columns}) : TensorView(data, dtype, {count, rows, columns});
}

/// Adds a view over the ranks that have parts of the matrices.
void add_parts(const MatrixBatch& of, const TensorView& view, const StepArgs& args) {
  if (of.axis.empty()) return;
  Communicator* const group = args.groups.find(of.axis);
  TRIAX_REQUIRE(group, "optim-muon: there is no communicator of {}, whose ranks have parts of a matrix", of.axis);
  group->wait(group->all_reduce(view, view, Reduce::sum, args.op.stream, args.action), args.op.stream);
}

/// Divides each matrix by its Frobenius norm.
void normalize(const MatrixBatch& of, const Workspace& work, const StepArgs& args, KernelSet& kernels) {
  const TensorView flat = work.x.reshape({of.count, of.rows * of.columns});
  if (of.elements() == 0) {
    fill(work.squares, 0);
  } else {
    for (std::int64_t i = 0; i < of.count; ++i)
      kernels.sum_squares({.out = work.squares.slice(0, i, i + 1), .x = flat.at(i)}, args.op);
  }
  add_parts(of, work.squares, args);
  args.op.stream.ready();
  divide_by_norms(flat, work.squares);
}

void add_gram(const MatrixBatch& of, const TensorView& x, const TensorView& gram, const StepArgs& args,
              KernelSet& kernels) {
  if (of.elements() == 0) {
    fill(gram, 0);
  } else {
    kernels.gemm({.d = gram, .a = x, .b = x, .transpose_a = of.adds_rows, .transpose_b = !of.adds_rows}, args.op);
  }
  add_parts(of, gram, args);
}

} // namespace

std::size_t workspace_bytes(const MatrixBatch& of, DType dtype) {
  const std::size_t width = bytes_of(dtype), count = static_cast<std::size_t>(of.count),
                    part = static_cast<std::size_t>(of.elements()) * width,
                    gram = static_cast<std::size_t>(of.count * of.gram() * of.gram()) * width;
  return 2 * Arena::aligned(part) + 2 * Arena::aligned(gram) + Arena::aligned(count * sizeof(double));
}

Workspace workspace_of(const MatrixBatch& of, DType dtype, std::span<std::byte> scratch) {
  std::byte* next = scratch.empty() ? nullptr : scratch.data();
  const auto take = [&](DType type, std::int64_t elements) {
    std::byte* const begin = next;
    if (next) next += Arena::aligned(static_cast<std::size_t>(elements) * bytes_of(type));
    return begin;
  };
  const std::int64_t side = of.gram(), squared = of.count * side * side;
  Workspace out;
  out.x = matrices(take(dtype, of.elements()), dtype, of.count, of.rows, of.columns);
  out.next = matrices(take(dtype, of.elements()), dtype, of.count, of.rows, of.columns);
  out.gram = matrices(take(dtype, squared), dtype, of.count, side, side);
  out.polynomial = matrices(take(dtype, squared), dtype, of.count, side, side);
  out.squares = TensorView(take(DType::f64, of.count), DType::f64, {of.count});
  return out;
}

TensorView orthogonalize(const MatrixBatch& of, const Workspace& work, int steps, const StepArgs& args,
                         KernelSet& kernels) {
  normalize(of, work, args, kernels);
  TensorView x = work.x, next = work.next;
  for (int step = 0; step < steps; ++step) {
    add_gram(of, x, work.gram, args, kernels);
    kernels.gemm({.d = work.polynomial, .a = work.gram, .b = work.gram, .alpha = kC}, args.op);
    args.op.stream.ready();
    add_lower_terms(work.polynomial, work.gram, kA, kB);
    if (of.elements() > 0)
      kernels.gemm({.d = next, .a = of.adds_rows ? x : work.polynomial, .b = of.adds_rows ? work.polynomial : x},
                   args.op);
    std::swap(x, next);
  }
  args.op.stream.ready();
  return x;
}

} // namespace triax::optim_muon
