// SPDX-License-Identifier: Apache-2.0
// Matrix products with any strides.
#include <algorithm>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

/// op(x) of one matrix: element (i, j) lies at data[i * rows + j * columns].
template <class T>
struct Matrix {
  T* data;
  std::int64_t rows, columns;
};

template <class T>
Matrix<T> matrix(const TensorView& x, std::int64_t offset, bool transpose) {
  Matrix<T> m{x.as<T>() + offset, x.stride(-2), x.stride(-1)};
  if (transpose) std::swap(m.rows, m.columns);
  return m;
}

struct Sizes {
  std::int64_t m, n, k;
};

/// Computes 16 columns at a time: 16 independent sums, each in the order of k.
constexpr std::int64_t kColumns = 16;

template <class T>
void multiply(Matrix<T> d, Matrix<const T> a, Matrix<const T> b, Sizes size, double alpha, double beta) {
  for (std::int64_t j0 = 0; j0 < size.n; j0 += kColumns) {
    const std::int64_t width = std::min(kColumns, size.n - j0);
    for (std::int64_t i = 0; i < size.m; ++i) {
      double sum[kColumns] = {};
      for (std::int64_t k = 0; k < size.k; ++k) {
        const double x = a.data[i * a.rows + k * a.columns];
        const T* row = b.data + k * b.rows + j0 * b.columns;
        if (width == kColumns && b.columns == 1) {
          for (std::int64_t j = 0; j < kColumns; ++j) sum[j] += x * row[j];
        } else {
          for (std::int64_t j = 0; j < width; ++j) sum[j] += x * row[j * b.columns];
        }
      }
      for (std::int64_t j = 0; j < width; ++j) {
        T& to = d.data[i * d.rows + (j0 + j) * d.columns];
        // With beta = 0 the old value is not read: it may be NaN.
        to = static_cast<T>(beta == 0 ? alpha * sum[j] : alpha * sum[j] + beta * static_cast<double>(to));
      }
    }
  }
}

/// Size and stride of batch dimension 0 or 1; a missing one has size 1 and stride 0.
std::int64_t batch_size(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 1 : x.size(at);
}
std::int64_t batch_stride(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 0 : x.stride(at);
}

} // namespace

void ReferenceKernels::do_gemm(const Gemm& args, const OpContext&) {
  const Sizes size{args.d.size(-2), args.d.size(-1), args.a.size(args.transpose_a ? -2 : -1)};
  by_type(args.d.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < batch_size(args.d, 0); ++i) {
      for (std::int64_t j = 0; j < batch_size(args.d, 1); ++j) {
        const auto offset = [&](const TensorView& x) { return i * batch_stride(x, 0) + j * batch_stride(x, 1); };
        multiply<T>(matrix<T>(args.d, offset(args.d), false), matrix<const T>(args.a, offset(args.a), args.transpose_a),
                    matrix<const T>(args.b, offset(args.b), args.transpose_b), size, args.alpha, args.beta);
      }
    }
  });
}

} // namespace triax::reference_kernels
