// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019).
#include <cmath>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

struct Statistics {
  double mean, rstd;
};

template <class T>
Statistics statistics(NormKind kind, const T* x, std::int64_t n, double eps) {
  double mean = 0, square = 0;
  if (kind == NormKind::layer) {
    for (std::int64_t j = 0; j < n; ++j) mean += x[j];
    mean /= static_cast<double>(n);
  }
  for (std::int64_t j = 0; j < n; ++j) square += (x[j] - mean) * (x[j] - mean);
  return {mean, 1 / std::sqrt(square / static_cast<double>(n) + eps)};
}

/// The statistics of row r that the forward stored.
template <class T>
Statistics kept(NormKind kind, const TensorView& mean, const TensorView& rstd, std::int64_t r) {
  return {kind == NormKind::layer ? static_cast<double>(mean.as<const T>()[r]) : 0.0,
          static_cast<double>(rstd.as<const T>()[r])};
}

} // namespace

void ReferenceKernels::do_norm_fwd(const NormFwd& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.x.size(-1);
    const bool layer = args.kind == NormKind::layer;
    const T *weight = args.weight.as<const T>(), *bias = args.bias.as<const T>();
    for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
      const T* x = args.x.as<const T>() + r * n;
      T* y = args.y.as<T>() + r * n;
      const auto [mean, rstd] = statistics(args.kind, x, n, args.eps);
      for (std::int64_t j = 0; j < n; ++j) {
        y[j] = static_cast<T>((x[j] - mean) * rstd * weight[j] + (layer ? static_cast<double>(bias[j]) : 0.0));
      }
      if (layer) args.mean.as<T>()[r] = static_cast<T>(mean);
      args.rstd.as<T>()[r] = static_cast<T>(rstd);
    }
  });
}

// With g = dy * weight and z the normalised x: dx = rstd * (g - mean(g) - z * mean(g z)); rms norm has no mean(g) term.
void ReferenceKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.x.size(-1);
    const T* weight = args.weight.as<const T>();
    for (std::int64_t r = 0; r < rows_of(args.x); ++r) {
      const T *x = args.x.as<const T>() + r * n, *dy = args.dy.as<const T>() + r * n;
      const T* residual = args.residual.empty() ? nullptr : args.residual.as<const T>() + r * n;
      T* dx = args.dx.as<T>() + r * n;
      const auto [mean, rstd] = kept<T>(args.kind, args.mean, args.rstd, r);
      double sum_g = 0, sum_gz = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double g = static_cast<double>(dy[j]) * weight[j];
        sum_g += g;
        sum_gz += g * (x[j] - mean) * rstd;
      }
      const double mean_g = args.kind == NormKind::layer ? sum_g / static_cast<double>(n) : 0.0;
      const double mean_gz = sum_gz / static_cast<double>(n);
      for (std::int64_t j = 0; j < n; ++j) {
        const double g = static_cast<double>(dy[j]) * weight[j], z = (x[j] - mean) * rstd;
        dx[j] = static_cast<T>(rstd * (g - mean_g - z * mean_gz) + (residual ? static_cast<double>(residual[j]) : 0.0));
      }
    }
  });
}

void ReferenceKernels::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = args.x.size(-1), rows = rows_of(args.x);
    const T *x = args.x.as<const T>(), *dy = args.dy.as<const T>();
    T *dweight = args.dweight.as<T>(), *dbias = args.dbias.empty() ? nullptr : args.dbias.as<T>();
    for (std::int64_t j = 0; j < n; ++j) {
      double weight_sum = 0, bias_sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto [mean, rstd] = kept<T>(args.kind, args.mean, args.rstd, r);
        weight_sum += dy[r * n + j] * (x[r * n + j] - mean) * rstd;
        bias_sum += dy[r * n + j];
      }
      dweight[j] = static_cast<T>(dweight[j] + weight_sum);
      if (dbias) dbias[j] = static_cast<T>(dbias[j] + bias_sum);
    }
  });
}

} // namespace triax::reference_kernels
