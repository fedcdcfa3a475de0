// SPDX-License-Identifier: Apache-2.0
// Norms, embedding and cross-entropy: operations on the rows of a matrix.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "formulas.hpp"

namespace triax::conformance::formulas {

namespace {

/// (x - mean) * rstd of element `j` in row `r`; an rms norm has no mean.
double normalized(NormKind kind, const TensorView& x, const TensorView& mean, const TensorView& rstd, std::int64_t r,
                  std::int64_t j) {
  return (row_of(x, r)[j] - (kind == NormKind::layer ? element(mean, r) : 0)) * element(rstd, r);
}

/// Row of the table for token number `i`, or -1 if it has none.
std::int64_t table_row(const TensorView& tokens, std::int64_t i, std::int64_t begin, std::int64_t valid) {
  const std::int64_t row = tokens.as<const std::int32_t>()[i] - begin;
  return row >= 0 && row < valid ? row : -1;
}

} // namespace

void compute(const NormFwd& args) {
  const std::int64_t n = args.x.size(-1);
  const bool is_layer = args.kind == NormKind::layer;
  for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
    const double* const x = row_of(args.x, r);
    double sum = 0, squares = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += x[j];
    const double mean = is_layer ? sum / static_cast<double>(n) : 0;
    for (std::int64_t j = 0; j < n; ++j) squares += (x[j] - mean) * (x[j] - mean);
    if (is_layer) element(args.mean, r) = mean;
    element(args.rstd, r) = 1 / std::sqrt(squares / static_cast<double>(n) + args.eps);
    for (std::int64_t j = 0; j < n; ++j)
      row_of(args.y, r)[j] = normalized(args.kind, args.x, args.mean, args.rstd, r, j) * element(args.weight, j) +
                             (is_layer ? element(args.bias, j) : 0);
  }
}

/// With h = (x - mean) rstd and g = dy weight: dx = rstd (g - average(g) - h average(g h)); an rms norm has no
/// average(g).
void compute(const NormBwdInput& args) {
  const std::int64_t n = args.x.size(-1);
  for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
    const auto h = [&](std::int64_t j) { return normalized(args.kind, args.x, args.mean, args.rstd, r, j); };
    const auto g = [&](std::int64_t j) { return row_of(args.dy, r)[j] * element(args.weight, j); };
    double sum = 0, product = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      sum += g(j);
      product += g(j) * h(j);
    }
    const double average = args.kind == NormKind::layer ? sum / static_cast<double>(n) : 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double dx = element(args.rstd, r) * (g(j) - average - h(j) * product / static_cast<double>(n));
      row_of(args.dx, r)[j] = dx + (args.residual.empty() ? 0 : row_of(args.residual, r)[j]);
    }
  }
}

void compute(const NormBwdWeight& args) {
  for (std::int64_t r = 0; r < rows_of(args.x); ++r)
    for (std::int64_t j = 0; j < args.x.size(-1); ++j) {
      element(args.dweight, j) += row_of(args.dy, r)[j] * normalized(args.kind, args.x, args.mean, args.rstd, r, j);
      if (!args.dbias.empty()) element(args.dbias, j) += row_of(args.dy, r)[j];
    }
}

void compute(const EmbedFwd& args) {
  for (std::int64_t i = 0; i < rows_of(args.y); ++i) {
    const std::int64_t row = table_row(args.tokens, i, args.begin, args.valid);
    for (std::int64_t j = 0; j < args.y.size(-1); ++j) row_of(args.y, i)[j] = row < 0 ? 0 : row_of(args.table, row)[j];
  }
}

void compute(const EmbedBwd& args) {
  for (std::int64_t i = 0; i < rows_of(args.dy); ++i)
    if (const std::int64_t row = table_row(args.tokens, i, args.begin, args.valid); row >= 0)
      for (std::int64_t j = 0; j < args.dy.size(-1); ++j) row_of(args.dtable, row)[j] += row_of(args.dy, i)[j];
}

void compute(const XentMax& args) {
  for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
    double max = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < args.valid; ++j) max = std::max(max, row_of(args.logits, r)[j]);
    element(args.max, r) = max;
  }
}

void compute(const XentSums& args) {
  for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
    const double* const logits = row_of(args.logits, r);
    double sum = 0;
    for (std::int64_t j = 0; j < args.valid; ++j) sum += std::exp(logits[j] - element(args.max, r));
    element(args.sum_exp, r) = sum;
    const std::int64_t target = table_row(args.targets, r, args.begin, args.valid);
    element(args.target_logit, r) = target < 0 ? 0 : logits[target] - element(args.max, r);
  }
}

void compute(const XentLoss& args) {
  const std::int64_t samples = args.loss.elements();
  for (std::int64_t i = 0; i < samples; ++i) {
    double sum = 0;
    for (std::int64_t r = i; r < args.sum_exp.elements(); r += samples)
      sum += std::log(element(args.sum_exp, r)) - element(args.target_logit, r);
    element(args.loss, i) = sum;
  }
}

void compute(const XentBwd& args) {
  const double scale = args.scale * (args.scalars ? static_cast<double>(args.scalars->loss_scale) : 1);
  for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
    const std::int64_t target = table_row(args.targets, r, args.begin, args.valid);
    for (std::int64_t j = 0; j < args.logits.size(-1); ++j) {
      double& logit = row_of(args.logits, r)[j];
      const double softmax = j < args.valid ? std::exp(logit - element(args.max, r)) / element(args.sum_exp, r) : 0;
      logit = (softmax - (j == target ? 1 : 0)) * scale;
    }
  }
}

void compute(const XentFused& args) {
  compute(XentMax{args.max, args.logits, args.valid});
  compute(XentSums{args.sum_exp, args.target_logit, args.logits, args.max, args.targets, 0, args.valid});
  compute(XentLoss{args.loss, args.sum_exp, args.target_logit});
}

} // namespace triax::conformance::formulas
