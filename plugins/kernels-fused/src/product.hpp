// SPDX-License-Identifier: Apache-2.0
// The products of a linear layer in the form of cuBLASLt.
//
// cuBLASLt is column-major, so a row-major matrix [r, c] is its transpose there: c rows, r columns, leading dimension
// c. A product d = op(a) op(b) becomes d^T = op(b)^T op(a)^T, with swapped operands:
//
//   forward          y [rows, n] = x [rows, k] w^T     A = w (k x n), transposed; B = x (k x rows); D = y (n x rows)
//   input gradient   dx [rows, k] = dy [rows, n] w     A = w (k x n); B = dy (n x rows); D = dx (k x rows)
//   weight gradient  dw [n, k] += dy^T x               A = x (k x rows); B = dy (n x rows), transposed; D = dw (k x n)
//
// The forward's bias has n elements, one per row of D, which the epilogue adds. The gradient of the bias has one
// element per column of the weight gradient's D. The epilogue sums it over B. It overwrites, so its result is a partial
// gradient that is added afterwards.
//
// Threads: values, any thread. Ownership: the caller's views.
#pragma once

#include <cstdint>

#include "triax/kernel_ops.hpp"

namespace triax::kernels_fused {

// gelu: also writes its input; gelu_bwd: multiplies by GELU's derivative; bias_bwd: also writes the gradient of the
// bias
enum class Epilogue : std::uint8_t { none, bias, gelu, gelu_bias, gelu_bwd, bias_bwd };

/// The properties on which the selection of an algorithm depends: sizes, types and epilogue; no pointers.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0; // D is m x n, column-major
  bool transpose_a = false, transpose_b = false;
  bool accumulates = false; // D += instead of =
  DType in = DType::f32, out = DType::f32;
  Epilogue epilogue = Epilogue::none;

  bool operator==(const ProductShape&) const = default;

  std::int64_t lda() const { return transpose_a ? k : m; }
  std::int64_t ldb() const { return transpose_b ? n : k; }
  bool has_bias() const { return epilogue == Epilogue::bias || epilogue == Epilogue::gelu_bias; }
  bool has_gelu() const {
    return epilogue == Epilogue::gelu || epilogue == Epilogue::gelu_bias || epilogue == Epilogue::gelu_bwd;
  }
};

struct Product {
  ProductShape shape;
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void *d = nullptr, *gelu_aux = nullptr, *dbias = nullptr; // gelu_aux: written with gelu, read with gelu_bwd
};

/// Whether the product's epilogue applies the activation. Not in f32: the accuracy of cuBLASLt's tanh is not
/// documented, and layers must agree with the reference to f32 rounding.
bool applies(Activation act, DType data);

Product product_of(const LinearFwd& args);
Product product_of(const LinearBwdInput& args);
Product product_of(const LinearBwdWeight& args);
/// The product of a weight gradient that also writes the partial gradient of the bias: [n], of dw's type, to `part`.
Product with_bias_gradient(Product product, void* part);

/// Whether cuBLASLt can be used: no size is 0, all pointers are multiples of 16 bytes (null pointers are not known yet,
/// and arenas are aligned), and the rows of a second result are a multiple of 8 long.
bool suits_lt(const Product& product);

} // namespace triax::kernels_fused
