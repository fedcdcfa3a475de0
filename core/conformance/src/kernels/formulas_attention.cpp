// SPDX-License-Identifier: Apache-2.0
// Softmax, rotary positions and attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "formulas.hpp"

namespace triax::conformance::formulas {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Index of query `q` of head `a` in a statistic [b, a, sq].
std::int64_t query_index(const TensorView& q_view, std::int64_t b, std::int64_t a, std::int64_t q) {
  return (b * q_view.size(2) + a) * q_view.size(0) + q;
}

/// log(sum of exp(values)); -infinity for no values.
double log_sum_exp(const std::vector<double>& values) {
  const double max = values.empty() ? -kInfinity : *std::ranges::max_element(values);
  if (max == -kInfinity) return max;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - max);
  return max + std::log(sum);
}

/// Calls body(b, a, s) for each sample, head and position of a view [s, b, a, d].
template <class Body>
void for_each_position(const TensorView& view, const Body& body) {
  for (std::int64_t b = 0; b < view.size(1); ++b)
    for (std::int64_t a = 0; a < view.size(2); ++a)
      for (std::int64_t s = 0; s < view.size(0); ++s) body(b, a, s);
}

/// x . y over the last dimension of views [s, b, a, d].
double dot(const TensorView& x, std::int64_t s_x, std::int64_t a_x, const TensorView& y, std::int64_t s_y,
           std::int64_t a_y, std::int64_t b) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.size(3); ++i) sum += element(x, s_x, b, a_x, i) * element(y, s_y, b, a_y, i);
  return sum;
}

/// The dropout of attention: rows are queries from q0 on, columns are keys from k0 on.
Drop drop_of(const Drop& drop, const Mask& mask) {
  Drop out = drop;
  out.row0 = mask.q0;
  out.column0 = mask.k0;
  return out;
}

void clear(const TensorView& view) {
  for_each_position(view, [&](std::int64_t b, std::int64_t a, std::int64_t s) {
    for (std::int64_t i = 0; i < view.size(3); ++i) element(view, s, b, a, i) = 0;
  });
}

} // namespace

void compute(const SoftmaxFwd& args) {
  const TensorView& x = args.x;
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t a = 0; a < x.size(1); ++a)
      for (std::int64_t q = 0; q < x.size(2); ++q) {
        std::vector<double> visible;
        for (std::int64_t k = 0; k < x.size(3); ++k)
          if (sees(args.mask, b, q, k)) visible.push_back(args.scale * element(x, b, a, q, k));
        const double lse = log_sum_exp(visible);
        if (!args.lse.empty()) element(args.lse, (b * x.size(1) + a) * x.size(2) + q) = lse;
        for (std::int64_t k = 0; k < x.size(3); ++k) {
          const double score = args.scale * element(x, b, a, q, k);
          element(args.y, b, a, q, k) = sees(args.mask, b, q, k) ? std::exp(score - lse) : 0;
        }
      }
}

void compute(const SoftmaxBwd& args) {
  const std::int64_t n = args.y.size(-1);
  for (std::int64_t r = 0; r < rows_of(args.y); ++r) {
    double delta = 0;
    for (std::int64_t j = 0; j < n; ++j) delta += row_of(args.dy, r)[j] * row_of(args.y, r)[j];
    if (!args.delta.empty()) delta = element(args.delta, r);
    for (std::int64_t j = 0; j < n; ++j)
      row_of(args.dx, r)[j] = args.scale * row_of(args.y, r)[j] * (row_of(args.dy, r)[j] - delta);
  }
}

void compute(const SoftmaxFromLse& args) {
  const TensorView& x = args.x;
  for (std::int64_t b = 0; b < x.size(0); ++b)
    for (std::int64_t a = 0; a < x.size(1); ++a)
      for (std::int64_t q = 0; q < x.size(2); ++q)
        for (std::int64_t k = 0; k < x.size(3); ++k) {
          const double lse = element(args.lse, (b * x.size(1) + a) * x.size(2) + q);
          const double score = args.scale * element(x, b, a, q, k);
          element(args.y, b, a, q, k) = sees(args.mask, b, q, k) ? std::exp(score - lse) : 0;
        }
}

void compute(const AttentionDelta& args) {
  for_each_position(args.o, [&](std::int64_t b, std::int64_t a, std::int64_t q) {
    element(args.delta, query_index(args.o, b, a, q)) = dot(args.dout, q, a, args.o, q, a, b);
  });
}

void compute(const AttentionMerge& args) {
  for_each_position(args.o, [&](std::int64_t b, std::int64_t a, std::int64_t q) {
    double& lse = element(args.lse, query_index(args.o, b, a, q));
    const double more = element(args.lse_more, query_index(args.o, b, a, q));
    const double both = log_sum_exp({lse, more});
    for (std::int64_t i = 0; i < args.o.size(3); ++i) {
      double& o = element(args.o, q, b, a, i);
      const double o_more = element(args.o_more, q, b, a, i);
      o = both == -kInfinity ? 0 : std::exp(lse - both) * o + std::exp(more - both) * o_more;
    }
    lse = both;
  });
}

/// As in transformers' _compute_llama3_parameters(), by wavelengths.
double llama3_frequency(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / frequency, original = scaling.original_positions;
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth =
      (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

void compute(const Rope& args) {
  const std::int64_t half = args.x.size(3) / 2;
  for_each_position(args.x, [&](std::int64_t b, std::int64_t a, std::int64_t s) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2 * static_cast<double>(i) / static_cast<double>(2 * half);
      const double angle =
          static_cast<double>(args.position0 + s) * llama3_frequency(std::pow(args.base, exponent), args.scaling);
      const double c = std::cos(angle), t = args.inverse ? -std::sin(angle) : std::sin(angle);
      const double first = element(args.x, s, b, a, i), second = element(args.x, s, b, a, i + half);
      element(args.y, s, b, a, i) = c * first - t * second;
      element(args.y, s, b, a, i + half) = t * first + c * second;
    }
  });
}

void compute(const AttentionFwd& args) {
  const std::int64_t keys = args.k.size(0), group = args.q.size(2) / args.k.size(2);
  const Drop drop = drop_of(args.drop, args.mask);
  for_each_position(args.q, [&](std::int64_t b, std::int64_t a, std::int64_t q) {
    std::vector<double> scores(static_cast<std::size_t>(keys), -kInfinity);
    for (std::int64_t k = 0; k < keys; ++k)
      if (sees(args.mask, b, q, k))
        scores[static_cast<std::size_t>(k)] = args.scale * dot(args.q, q, a, args.k, k, a / group, b);
    const double lse = log_sum_exp(scores);
    element(args.lse, query_index(args.q, b, a, q)) = lse;
    for (std::int64_t i = 0; i < args.o.size(3); ++i) element(args.o, q, b, a, i) = 0;
    for (std::int64_t k = 0; k < keys; ++k) {
      if (!sees(args.mask, b, q, k)) continue;
      const double p = std::exp(scores[static_cast<std::size_t>(k)] - lse) * drop_factor(drop, {b, a, q, k});
      for (std::int64_t i = 0; i < args.o.size(3); ++i)
        element(args.o, q, b, a, i) += p * element(args.v, k, b, a / group, i);
    }
  });
}

void compute(const AttentionBwd& args) {
  const std::int64_t group = args.q.size(2) / args.k.size(2), width = args.q.size(3);
  const Drop drop = drop_of(args.drop, args.mask);
  clear(args.dq);
  if (!args.add_kv) clear(args.dk);
  if (!args.add_kv) clear(args.dv);
  for_each_position(args.q, [&](std::int64_t b, std::int64_t a, std::int64_t q) {
    const std::int64_t a_kv = a / group;
    const double lse = element(args.lse, query_index(args.q, b, a, q)), delta = dot(args.dout, q, a, args.o, q, a, b);
    for (std::int64_t k = 0; k < args.k.size(0); ++k) {
      if (!sees(args.mask, b, q, k)) continue;
      const double factor = drop_factor(drop, {b, a, q, k});
      const double p = std::exp(args.scale * dot(args.q, q, a, args.k, k, a_kv, b) - lse);
      const double ds = p * (factor * dot(args.dout, q, a, args.v, k, a_kv, b) - delta);
      for (std::int64_t i = 0; i < width; ++i) {
        element(args.dv, k, b, a_kv, i) += factor * p * element(args.dout, q, b, a, i);
        element(args.dq, q, b, a, i) += args.scale * ds * element(args.k, k, b, a_kv, i);
        element(args.dk, k, b, a_kv, i) += args.scale * ds * element(args.q, q, b, a, i);
      }
    }
  });
}

} // namespace triax::conformance::formulas
