// SPDX-License-Identifier: Apache-2.0
// Bias, sums, dropout and activations.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

/// Determines which elements of one sample are dropped; caches the Philox block of the last call.
class DropMask {
 public:
  DropMask(const Drop& drop, std::int64_t sample)
      : drop_(drop),
        sample_(static_cast<std::uint32_t>(drop.samples.as<const std::int64_t>()[sample])),
        threshold_(drop_threshold(drop.p)) {}

  bool dropped(std::int64_t element) {
    if (element / 4 != block_) {
      block_ = element / 4;
      words_ = philox_at(drop_.key, static_cast<std::uint64_t>(element), drop_.site, sample_);
    }
    return words_[static_cast<std::size_t>(element % 4)] < threshold_;
  }

 private:
  const Drop& drop_;
  std::uint32_t sample_, threshold_;
  std::int64_t block_ = -1;
  PhiloxBlock words_{};
};

template <class T>
void drop_row(T* y, const T* x, std::int64_t n, std::int64_t first_element, DropMask mask, double scale) {
  for (std::int64_t j = 0; j < n; ++j) y[j] = mask.dropped(first_element + j) ? T{0} : static_cast<T>(x[j] * scale);
}

/// Row r is position r / b of sample r % b.
template <class T>
void drop_rows(const Dropout& args) {
  const Drop& drop = args.drop;
  const std::int64_t n = args.x.size(-1), samples = drop.samples.elements();
  for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
    drop_row(args.y.as<T>() + r * n, args.x.as<const T>() + r * n, n,
             (drop.row0 + r / samples) * drop.width + drop.column0, DropMask(drop, r % samples),
             1.0 / (1.0 - static_cast<double>(drop.p)));
  }
}

/// x and y are [b, a, sq, sk].
template <class T>
void drop_scores(const Dropout& args) {
  const Drop& drop = args.drop;
  const std::int64_t heads = args.x.size(1), rows = args.x.size(2), n = args.x.size(3);
  for (std::int64_t r = 0; r < args.x.size(0) * heads * rows; ++r) {
    const std::int64_t sample = r / (heads * rows), head = drop.head0 + r / rows % heads, row = drop.row0 + r % rows;
    drop_row(args.y.as<T>() + r * n, args.x.as<const T>() + r * n, n,
             (head * drop.rows + row) * drop.width + drop.column0, DropMask(drop, sample),
             1.0 / (1.0 - static_cast<double>(drop.p)));
  }
}

constexpr double kCubic = 0.044715;
const double kSlope = std::sqrt(2.0 / std::numbers::pi);

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x)));
}
double gelu_derivative(double x) {
  const double t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

void ReferenceKernels::do_bias_add(const BiasAdd& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.x.size(-1);
    const T* bias = args.bias.as<const T>();
    for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
      const T* x = args.x.as<const T>() + r * n;
      T* y = args.y.as<T>() + r * n;
      for (std::int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(static_cast<double>(x[j]) + bias[j]);
    }
  });
}

void ReferenceKernels::do_bias_bwd(const BiasBwd& args, const OpContext&) {
  by_type(args.dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.dy.size(-1), rows = rows_of(args.dy);
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) sum += args.dy.as<const T>()[r * n + j];
      args.dbias.as<T>()[j] = static_cast<T>(args.dbias.as<const T>()[j] + sum);
    }
  });
}

void ReferenceKernels::do_add(const Add& args, const OpContext&) {
  by_type(args.y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *a = args.a.as<const T>(), *b = args.b.as<const T>();
    T* y = args.y.as<T>();
    for (std::int64_t i = 0; i < args.y.elements(); ++i) y[i] = static_cast<T>(static_cast<double>(a[i]) + b[i]);
  });
}

void ReferenceKernels::do_dropout(const Dropout& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (args.drop.p == 0) {
      const T* x = args.x.as<const T>();
      if (args.y.data() != args.x.data()) std::copy(x, x + args.x.elements(), args.y.as<T>());
    } else if (args.x.rank() == 4) {
      drop_scores<T>(args);
    } else {
      drop_rows<T>(args);
    }
  });
}

void ReferenceKernels::do_act_fwd(const ActFwd& args, const OpContext&) {
  by_type(args.y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = args.x.as<const T>();
    T* y = args.y.as<T>();
    if (args.act == Activation::gelu_tanh) {
      for (std::int64_t i = 0; i < args.y.elements(); ++i) y[i] = static_cast<T>(gelu(x[i]));
      return;
    }
    const std::int64_t n = args.y.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.y); ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double gate = x[r * 2 * n + j], up = x[r * 2 * n + n + j];
        y[r * n + j] = static_cast<T>(gate * sigmoid(gate) * up);
      }
    }
  });
}

void ReferenceKernels::do_act_bwd(const ActBwd& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = args.x.as<const T>(), *dy = args.dy.as<const T>();
    T* dx = args.dx.as<T>();
    if (args.act == Activation::gelu_tanh) {
      for (std::int64_t i = 0; i < args.x.elements(); ++i) dx[i] = static_cast<T>(dy[i] * gelu_derivative(x[i]));
      return;
    }
    const std::int64_t n = args.dy.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.dy); ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double gate = x[r * 2 * n + j], up = x[r * 2 * n + n + j], g = dy[r * n + j], s = sigmoid(gate);
        dx[r * 2 * n + j] = static_cast<T>(g * up * s * (1 + gate * (1 - s)));
        dx[r * 2 * n + n + j] = static_cast<T>(g * gate * s);
      }
    }
  });
}

} // namespace triax::reference_kernels
