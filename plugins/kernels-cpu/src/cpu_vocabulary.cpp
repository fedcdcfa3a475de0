// SPDX-License-Identifier: Apache-2.0
// Operations over a vocabulary: embedding and cross-entropy.
#include <cmath>

#include "cpu_kernels.hpp"

namespace triax::kernels_cpu {

namespace {

/// Index of token r in the table of [begin, begin + valid), or -1.
std::int64_t place_of(const TensorView& tokens, std::int64_t r, std::int64_t begin, std::int64_t valid) {
  const std::int64_t place = tokens.as<const std::int32_t>()[r] - begin;
  return place >= 0 && place < valid ? place : -1;
}

} // namespace

// Copies rows as bytes, so the type does not matter.
void CpuKernels::do_embed_fwd(const EmbedFwd& args, const OpContext&) {
  const std::int64_t h = args.y.size(-1), bytes = h * static_cast<std::int64_t>(bytes_of(args.y.dtype()));
  by_rows(rows_of(args.y), h, [&](std::int64_t r) {
    const std::int64_t row = place_of(args.tokens, r, args.begin, args.valid);
    std::byte* y = args.y.as<std::byte>() + r * bytes;
    if (row < 0) {
      std::fill_n(y, bytes, std::byte{});
    } else {
      std::copy_n(args.table.as<const std::byte>() + row * bytes, bytes, y);
    }
  });
}

// Split by columns, not rows: tokens repeat, and gradients of one token must be added in a fixed order.
void CpuKernels::do_embed_bwd(const EmbedBwd& args, const OpContext&) {
  const std::int64_t h = args.dy.size(-1), rows = rows_of(args.dy);
  by_columns(h, [&](std::int64_t column, std::int64_t n) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t row = place_of(args.tokens, r, args.begin, args.valid);
      if (row < 0) continue;
      float* to = args.dtable.as<float>() + row * h + column;
      loops_.add(to, to, args.dy.as<const float>() + r * h + column, n);
    }
  });
}

void CpuKernels::do_xent_max(const XentMax& args, const OpContext&) {
  const std::int64_t columns = args.logits.size(-1);
  by_rows(rows_of(args.logits), columns, [&](std::int64_t r) {
    args.max.as<float>()[r] = loops_.row_max(args.logits.as<const float>() + r * columns, args.valid);
  });
}

void CpuKernels::xent_row(const XentSums& args, std::int64_t r) const {
  const float* x = args.logits.as<const float>() + r * args.logits.size(-1);
  const float max = args.max.as<const float>()[r];
  const std::int64_t target = place_of(args.targets, r, args.begin, args.valid);
  args.sum_exp.as<float>()[r] = loops_.sum_exp(x, max, args.valid);
  args.target_logit.as<float>()[r] = target < 0 ? 0.0f : x[target] - max;
}

void CpuKernels::do_xent_sums(const XentSums& args, const OpContext&) {
  by_rows(rows_of(args.logits), args.logits.size(-1), [&](std::int64_t r) { xent_row(args, r); });
}

// Computes the sums of a row while it is in the cache.
void CpuKernels::do_xent_fused(const XentFused& args, const OpContext& context) {
  const std::int64_t columns = args.logits.size(-1);
  const XentSums sums{args.sum_exp, args.target_logit, args.logits, args.max, args.targets, 0, args.valid};
  by_rows(rows_of(args.logits), columns, [&](std::int64_t r) {
    args.max.as<float>()[r] = loops_.row_max(args.logits.as<const float>() + r * columns, args.valid);
    xent_row(sums, r);
  });
  do_xent_loss({args.loss, args.sum_exp, args.target_logit}, context);
}

// One item per sample: samples are few, and a row takes only one logarithm.
void CpuKernels::do_xent_loss(const XentLoss& args, const OpContext&) {
  const std::int64_t rows = args.sum_exp.elements(), samples = args.loss.elements();
  pool_->run(samples, [&](std::int64_t sample, int) {
    double loss = 0;
    for (std::int64_t r = sample; r < rows; r += samples) {
      const double sum = args.sum_exp.as<const float>()[r], target = args.target_logit.as<const float>()[r];
      loss += std::log(sum) - target;
    }
    args.loss.as<double>()[sample] = loss;
  });
}

void CpuKernels::do_xent_bwd(const XentBwd& args, const OpContext&) {
  const double scale = args.scale * (args.scalars ? static_cast<double>(args.scalars->loss_scale) : 1.0);
  const std::int64_t columns = args.logits.size(-1);
  by_rows(rows_of(args.logits), columns, [&](std::int64_t r) {
    float* x = args.logits.as<float>() + r * columns;
    const float factor = static_cast<float>(scale / static_cast<double>(args.sum_exp.as<const float>()[r]));
    const std::int64_t target = place_of(args.targets, r, args.begin, args.valid);
    loops_.exp_scaled(x, args.max.as<const float>()[r], factor, args.valid);
    if (target >= 0) x[target] -= static_cast<float>(scale);
    std::fill(x + args.valid, x + columns, 0.0f);
  });
}

} // namespace triax::kernels_cpu
