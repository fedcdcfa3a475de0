// SPDX-License-Identifier: Apache-2.0
// Products, linear layers and elementwise operations.
#include <cmath>
#include <numbers>
#include <vector>

#include "formulas.hpp"

namespace triax::conformance::formulas {

namespace {

/// A matrix of a gemm: [rows, columns] after the transposition.
struct Matrix {
  double* data;
  std::int64_t row_stride, column_stride;
  double& at(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * column_stride]; }
};

Matrix matrix_of(const TensorView& view, bool transpose, std::int64_t offset) {
  double* const data = view.as<double>() + offset;
  if (transpose) return {data, view.stride(-1), view.stride(-2)};
  return {data, view.stride(-2), view.stride(-1)};
}

/// Offset of matrix number `index` over the batch dimensions.
std::int64_t offset_of(const TensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = view.rank() - 3; dim >= 0; --dim) {
    offset += index % view.size(dim) * view.stride(dim);
    index /= view.size(dim);
  }
  return offset;
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

constexpr double kCubic = 0.044715;
const double kGeluScale = std::sqrt(2 / std::numbers::pi);

/// dx [rows, n] = dy act'(x).
void differentiate(Activation act, const TensorView& dx, const TensorView& dy, const TensorView& x) {
  const std::int64_t n = dy.size(-1), wide = x.size(-1);
  std::vector<double> derivative(static_cast<std::size_t>(wide)); // dx may be dy
  for (std::int64_t r = 0; r < rows_of(dy); ++r) {
    std::fill(derivative.begin(), derivative.end(), 0.0);
    for (std::int64_t j = 0; j < n; ++j) add_derivative(act, derivative.data(), row_of(dy, r)[j], row_of(x, r), j, n);
    std::copy(derivative.begin(), derivative.end(), row_of(dx, r));
  }
}

} // namespace

double activated(Activation act, const double* x, std::int64_t j, std::int64_t n) {
  switch (act) {
    case Activation::none:
      return x[j];
    case Activation::gelu_tanh:
      return 0.5 * x[j] * (1 + std::tanh(kGeluScale * (x[j] + kCubic * x[j] * x[j] * x[j])));
    case Activation::silu_mul:
      return x[j] * logistic(x[j]) * x[n + j];
  }
  return 0;
}

void add_derivative(Activation act, double* dx, double dy, const double* x, std::int64_t j, std::int64_t n) {
  switch (act) {
    case Activation::none:
      dx[j] += dy;
      return;
    case Activation::gelu_tanh: {
      const double t = std::tanh(kGeluScale * (x[j] + kCubic * x[j] * x[j] * x[j]));
      const double inner = kGeluScale * (1 + 3 * kCubic * x[j] * x[j]);
      dx[j] += dy * (0.5 * (1 + t) + 0.5 * x[j] * (1 - t * t) * inner);
      return;
    }
    case Activation::silu_mul: {
      const double s = logistic(x[j]);
      dx[j] += dy * x[n + j] * s * (1 + x[j] * (1 - s));
      dx[n + j] += dy * x[j] * s;
      return;
    }
  }
}

void compute(const Gemm& args) {
  const std::int64_t m = args.d.size(-2), n = args.d.size(-1), k = args.a.size(args.transpose_a ? -2 : -1);
  std::int64_t batch = 1;
  for (int dim = 0; dim < args.d.rank() - 2; ++dim) batch *= args.d.size(dim);
  for (std::int64_t index = 0; index < batch; ++index) {
    const Matrix a = matrix_of(args.a, args.transpose_a, offset_of(args.a, index));
    const Matrix b = matrix_of(args.b, args.transpose_b, offset_of(args.b, index));
    const Matrix d = matrix_of(args.d, false, offset_of(args.d, index));
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t x = 0; x < k; ++x) sum += a.at(i, x) * b.at(x, j);
        d.at(i, j) = args.alpha * sum + (args.beta == 0 ? 0 : args.beta * d.at(i, j));
      }
  }
}

void compute(const BiasAdd& args) {
  for (std::int64_t r = 0; r < rows_of(args.x); ++r)
    for (std::int64_t j = 0; j < args.x.size(-1); ++j)
      row_of(args.y, r)[j] = row_of(args.x, r)[j] + element(args.bias, j);
}

void compute(const BiasBwd& args) {
  for (std::int64_t j = 0; j < args.dy.size(-1); ++j)
    for (std::int64_t r = 0; r < rows_of(args.dy); ++r) element(args.dbias, j) += row_of(args.dy, r)[j];
}

void compute(const Add& args) {
  for (std::int64_t i = 0; i < args.y.elements(); ++i) element(args.y, i) = element(args.a, i) + element(args.b, i);
}

void compute(const Dropout& args) {
  const TensorView& x = args.x;
  if (x.rank() < 4) {
    for (std::int64_t r = 0; r < rows_of(x); ++r)
      for (std::int64_t j = 0; j < x.size(-1); ++j)
        row_of(args.y, r)[j] = row_of(x, r)[j] * drop_factor(args.drop, position_in_rows(args.drop, r, j));
    return;
  }
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t a = 0; a < x.size(1); ++a)
      for (std::int64_t q = 0; q < x.size(2); ++q)
        for (std::int64_t k = 0; k < x.size(3); ++k)
          element(args.y, b, a, q, k) = element(x, b, a, q, k) * drop_factor(args.drop, {b, a, q, k});
}

void compute(const ActFwd& args) {
  const std::int64_t n = args.y.size(-1);
  for (std::int64_t r = 0; r < rows_of(args.y); ++r)
    for (std::int64_t j = 0; j < n; ++j) row_of(args.y, r)[j] = activated(args.act, row_of(args.x, r), j, n);
}

void compute(const ActBwd& args) {
  differentiate(args.act, args.dx, args.dy, args.x);
}

void compute(const LinearFwd& args) {
  const bool is_active = args.act != Activation::none;
  const TensorView& z = is_active ? args.z : args.y;
  const std::int64_t n = z.size(-1), k = args.x.size(-1);
  for (std::int64_t r = 0; r < rows_of(z); ++r) {
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = args.bias.empty() ? 0 : element(args.bias, i);
      for (std::int64_t j = 0; j < k; ++j) sum += row_of(args.x, r)[j] * row_of(args.w, i)[j];
      row_of(z, r)[i] = sum;
    }
    for (std::int64_t i = 0; is_active && i < args.y.size(-1); ++i)
      row_of(args.y, r)[i] = activated(args.act, row_of(z, r), i, args.y.size(-1));
  }
}

void compute(const LinearBwdInput& args) {
  const std::int64_t n = args.w.size(0), k = args.w.size(1), rows = rows_of(args.dy);
  std::vector<double> product(static_cast<std::size_t>(rows * k));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < k; ++j)
        product[static_cast<std::size_t>(r * k + j)] += row_of(args.dy, r)[i] * row_of(args.w, i)[j];
  const TensorView whole(product.data(), DType::f64, {rows, k});
  if (args.act == Activation::none) {
    std::copy(product.begin(), product.end(), args.dx.as<double>());
  } else {
    differentiate(args.act, args.dx, whole, args.before);
  }
}

void compute(const LinearBwdWeight& args) {
  for (std::int64_t r = 0; r < rows_of(args.dy); ++r)
    for (std::int64_t i = 0; i < args.dw.size(0); ++i) {
      for (std::int64_t j = 0; j < args.dw.size(1); ++j)
        row_of(args.dw, i)[j] += row_of(args.dy, r)[i] * row_of(args.x, r)[j];
      if (!args.dbias.empty()) element(args.dbias, i) += row_of(args.dy, r)[i];
    }
}

void compute(const BiasDropoutAdd& args) {
  for (std::int64_t r = 0; r < rows_of(args.x); ++r)
    for (std::int64_t j = 0; j < args.x.size(-1); ++j) {
      const double branch = row_of(args.x, r)[j] + (args.bias.empty() ? 0 : element(args.bias, j));
      const double factor = drop_factor(args.drop, position_in_rows(args.drop, r, j));
      row_of(args.y, r)[j] = row_of(args.residual, r)[j] + factor * branch;
    }
}

void compute(const BiasDropoutAddNorm& args) {
  compute(BiasDropoutAdd{args.y, args.x, args.bias, args.residual, args.drop});
  compute(NormFwd{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps});
}

} // namespace triax::conformance::formulas
