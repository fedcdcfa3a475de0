// SPDX-License-Identifier: Apache-2.0
// Masked softmax, and rotary position embedding. reference_attention_parts.cpp has attention over parts of the keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"
#include "triax/rope_scaling.hpp"

namespace triax::reference_kernels {

namespace {

/// Number of leading keys, of `keys`, that query `query` of `sample` attends to.
std::int64_t visible(const Mask& mask, std::int64_t sample, std::int64_t query, std::int64_t keys) {
  std::int64_t count = keys;
  if (mask.kind == Mask::Kind::causal) count = std::min(count, mask.q0 + query + 1 - mask.k0);
  if (!mask.lengths.empty()) count = std::min(count, mask.lengths.as<const std::int32_t>()[sample] - mask.k0);
  return std::max<std::int64_t>(count, 0);
}

/// Softmax over the first `seen` of `keys` scores; the rest become 0. Returns the log of the sum of exponentials.
template <class T>
double softmax_row(T* y, const T* x, std::int64_t seen, std::int64_t keys, double scale) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t k = 0; k < seen; ++k) max = std::max(max, scale * x[k]);
  for (std::int64_t k = 0; k < seen; ++k) sum += std::exp(scale * x[k] - max);
  for (std::int64_t k = 0; k < seen; ++k) y[k] = static_cast<T>(std::exp(scale * x[k] - max) / sum);
  std::fill(y + seen, y + keys, T{0});
  return max + std::log(sum); // -infinity if seen is 0
}

} // namespace

void ReferenceKernels::do_softmax_fwd(const SoftmaxFwd& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t heads = args.x.size(1), queries = args.x.size(2), keys = args.x.size(3);
    for (std::int64_t r = 0; r < args.x.size(0) * heads * queries; ++r) {
      const std::int64_t seen = visible(args.mask, r / (heads * queries), r % queries, keys);
      const double lse =
          softmax_row(args.y.as<T>() + r * keys, args.x.as<const T>() + r * keys, seen, keys, args.scale);
      if (!args.lse.empty()) args.lse.as<T>()[r] = static_cast<T>(lse);
    }
  });
}

void ReferenceKernels::do_softmax_bwd(const SoftmaxBwd& args, const OpContext&) {
  by_type(args.y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.y.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.y); ++r) {
      const T *y = args.y.as<const T>() + r * n, *dy = args.dy.as<const T>() + r * n;
      T* dx = args.dx.as<T>() + r * n;
      double delta = 0;
      if (args.delta.empty()) {
        for (std::int64_t j = 0; j < n; ++j) delta += static_cast<double>(dy[j]) * y[j];
      } else {
        delta = args.delta.as<const T>()[r];
      }
      for (std::int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>(args.scale * y[j] * (dy[j] - delta));
    }
  });
}

void ReferenceKernels::do_softmax_from_lse(const SoftmaxFromLse& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t heads = args.x.size(1), queries = args.x.size(2), keys = args.x.size(3);
    for (std::int64_t r = 0; r < args.x.size(0) * heads * queries; ++r) {
      const std::int64_t seen = visible(args.mask, r / (heads * queries), r % queries, keys);
      const T* x = args.x.as<const T>() + r * keys;
      T* y = args.y.as<T>() + r * keys;
      const double lse = args.lse.as<const T>()[r];
      for (std::int64_t k = 0; k < seen; ++k) y[k] = static_cast<T>(std::exp(args.scale * x[k] - lse));
      std::fill(y + seen, y + keys, T{0});
    }
  });
}

void ReferenceKernels::do_rope(const Rope& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const TensorView &x = args.x, &y = args.y;
    const std::int64_t half = x.size(3) / 2;
    for (std::int64_t s = 0; s < x.size(0); ++s) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double power = -2.0 * static_cast<double>(i) / static_cast<double>(x.size(3));
        const double angle =
            static_cast<double>(args.position0 + s) * scaled_frequency(std::pow(args.base, power), args.scaling);
        const double cosine = std::cos(angle), sine = args.inverse ? -std::sin(angle) : std::sin(angle);
        for (std::int64_t b = 0; b < x.size(1); ++b) {
          for (std::int64_t a = 0; a < x.size(2); ++a) {
            const T* from = x.as<const T>() + s * x.stride(0) + b * x.stride(1) + a * x.stride(2);
            T* to = y.as<T>() + s * y.stride(0) + b * y.stride(1) + a * y.stride(2);
            const double first = from[i], second = from[i + half];
            to[i] = static_cast<T>(first * cosine - second * sine);
            to[i + half] = static_cast<T>(second * cosine + first * sine);
          }
        }
      }
    }
  });
}

} // namespace triax::reference_kernels
