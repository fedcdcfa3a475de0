// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over a range of the vocabulary's columns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

/// Column of row r's target in this range, or -1 if the target lies outside it.
std::int64_t target_column(const TensorView& targets, std::int64_t r, std::int64_t begin, std::int64_t valid) {
  const std::int64_t column = targets.as<const std::int32_t>()[r] - begin;
  return column >= 0 && column < valid ? column : -1;
}

} // namespace

void ReferenceKernels::do_xent_max(const XentMax& args, const OpContext&) {
  by_type(args.logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
      const T* x = args.logits.as<const T>() + r * args.logits.size(-1);
      T max = -std::numeric_limits<T>::infinity(); // the result for a range that is all padding
      for (std::int64_t j = 0; j < args.valid; ++j) max = std::max(max, x[j]);
      args.max.as<T>()[r] = max;
    }
  });
}

void ReferenceKernels::do_xent_sums(const XentSums& args, const OpContext&) {
  by_type(args.logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
      const T* x = args.logits.as<const T>() + r * args.logits.size(-1);
      const double max = args.max.as<const T>()[r];
      double sum = 0;
      for (std::int64_t j = 0; j < args.valid; ++j) sum += std::exp(x[j] - max);
      const std::int64_t target = target_column(args.targets, r, args.begin, args.valid);
      args.sum_exp.as<T>()[r] = static_cast<T>(sum);
      args.target_logit.as<T>()[r] = target < 0 ? T{0} : static_cast<T>(x[target] - max);
    }
  });
}

void ReferenceKernels::do_xent_loss(const XentLoss& args, const OpContext&) {
  by_type(args.sum_exp.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t rows = args.sum_exp.elements(), samples = args.loss.elements();
    for (std::int64_t i = 0; i < samples; ++i) {
      double loss = 0;
      for (std::int64_t r = i; r < rows; r += samples) {
        loss += std::log(static_cast<double>(args.sum_exp.as<const T>()[r])) - args.target_logit.as<const T>()[r];
      }
      args.loss.as<double>()[i] = loss;
    }
  });
}

void ReferenceKernels::do_xent_bwd(const XentBwd& args, const OpContext&) {
  const double scale = args.scale * (args.scalars ? static_cast<double>(args.scalars->loss_scale) : 1.0);
  by_type(args.logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t columns = args.logits.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.logits); ++r) {
      T* x = args.logits.as<T>() + r * columns;
      const double max = args.max.as<const T>()[r], sum = args.sum_exp.as<const T>()[r];
      const std::int64_t target = target_column(args.targets, r, args.begin, args.valid);
      for (std::int64_t j = 0; j < args.valid; ++j) {
        x[j] = static_cast<T>((std::exp(x[j] - max) / sum - (j == target ? 1 : 0)) * scale);
      }
      std::fill(x + args.valid, x + columns, T{0});
    }
  });
}

} // namespace triax::reference_kernels
