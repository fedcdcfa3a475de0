// SPDX-License-Identifier: Apache-2.0
// The products of a linear layer as cuBLASLt sees them.
//
// cuBLASLt thinks in columns, and a row-major matrix [r, c] is its transpose there: c rows, r columns, leading
// dimension c. A product d = op(a) op(b) becomes d^T = op(b)^T op(a)^T, so the operands change places:
//
//   forward          y [rows, n] = x [rows, k] w^T     A = w (k x n), transposed; B = x (k x rows); D = y (n x rows)
//   input gradient   dx [rows, k] = dy [rows, n] w     A = w (k x n); B = dy (n x rows); D = dx (k x rows)
//   weight gradient  dw [n, k] += dy^T x               A = x (k x rows); B = dy (n x rows), transposed; D = dw (k x n)
//
// The bias of the forward has n elements, one for each row of D: what its epilogue adds. The bias's gradient has one
// for each column of the weight gradient's D: what its epilogue sums over the products' terms, those of B. It
// overwrites, so what it writes is a part, which is then added.
//
// Threads: values, any thread. Ownership: views of the caller. Blocking: never. Errors: none.
#pragma once

#include <cstdint>

#include "triax/kernel_ops.hpp"

namespace triax::fused {

// gelu: with its input as a second result; gelu_bwd: times GELU's derivative there; bias_bwd: with the bias's gradient
enum class Epilogue : std::uint8_t { none, bias, gelu, gelu_bias, gelu_bwd, bias_bwd };

/// What a choice of algorithm depends on: sizes, types, what is done besides; no pointer.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0; // D is m x n, in columns
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
  void *d = nullptr, *before_gelu = nullptr, *dbias = nullptr; // before_gelu: written with gelu, read with gelu_bwd
};

/// Whether the product's epilogue applies the activation. In f32 it does not: how exact cuBLASLt's tanh is there is not
/// documented, and layers agree with the reference to f32's rounding.
bool applies(Activation act, DType data);

Product product_of(const LinearFwd& args);
Product product_of(const LinearBwdInput& args);
Product product_of(const LinearBwdWeight& args);
/// A weight gradient's product that makes a part of the bias's as well: [n], of dw's type, at `part`.
Product with_bias_gradient(Product product, void* part);

/// Whether cuBLASLt is asked at all: nothing is empty, all of it lies at multiples of 16 bytes (what is null is not
/// there yet, and arenas are aligned), and the rows of a second result are a multiple of 8 long.
bool suits_lt(const Product& product);

} // namespace triax::fused
