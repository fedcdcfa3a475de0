// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019): a block for each row.
#include "block.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

/// One block per row.
///
/// mean: null for rms.
template <class T>
__global__ void norm_forward(T* y, const T* x, const T* weight, const T* bias, float* mean_out, float* rstd_out,
                             std::int64_t rows, std::int64_t n, float eps) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * n;
    float mean = 0, square = 0;
    if (mean_out) {
      for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) mean += value_of(in[j]);
      mean = block_sum(mean) / static_cast<float>(n);
    }
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float centered = value_of(in[j]) - mean;
      square += centered * centered;
    }
    const float rstd = 1 / sqrtf(block_sum(square) / static_cast<float>(n) + eps);
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float normed = (value_of(in[j]) - mean) * rstd * value_of(weight[j]);
      y[row * n + j] = rounded<T>(mean_out ? normed + value_of(bias[j]) : normed);
    }
    if (threadIdx.x != 0) continue;
    if (mean_out) mean_out[row] = mean;
    rstd_out[row] = rstd;
  }
}

/// One block per row.
///
/// With g = dy * weight and z the normalised x: dx = rstd * (g - mean(g) - z * mean(g z)); rms has no mean(g).
template <class T>
__global__ void norm_backward_input(T* dx, const T* dy, const T* x, const T* weight, const float* row_mean,
                                    const float* row_rstd, const T* residual, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t first = row * n;
    const float mean = row_mean ? row_mean[row] : 0.0f, rstd = row_rstd[row];
    float sum_g = 0, sum_gz = 0;
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float g = value_of(dy[first + j]) * value_of(weight[j]);
      sum_g += g;
      sum_gz += g * (value_of(x[first + j]) - mean) * rstd;
    }
    sum_g = block_sum(sum_g);
    sum_gz = block_sum(sum_gz);
    const float mean_g = row_mean ? sum_g / static_cast<float>(n) : 0.0f, mean_gz = sum_gz / static_cast<float>(n);
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float g = value_of(dy[first + j]) * value_of(weight[j]), z = (value_of(x[first + j]) - mean) * rstd;
      const float of_norm = rstd * (g - mean_g - z * mean_gz);
      dx[first + j] = rounded<T>(residual ? of_norm + value_of(residual[first + j]) : of_norm);
    }
  }
}

} // namespace

void Primitives::do_norm_fwd(const NormFwd& args, const OpContext& context) {
  over_rows(Op::norm_fwd, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(norm_forward<T>, args.y.as<T>(), args.x.as<const T>(), args.weight.as<const T>(), args.bias.as<const T>(),
           args.kind == NormKind::layer ? args.mean.as<float>() : nullptr, args.rstd.as<float>(), rows, args.x.size(-1),
           static_cast<float>(args.eps));
  });
}

void Primitives::do_norm_bwd_input(const NormBwdInput& args, const OpContext& context) {
  over_rows(Op::norm_bwd_input, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(norm_backward_input<T>, args.dx.as<T>(), args.dy.as<const T>(), args.x.as<const T>(),
           args.weight.as<const T>(), args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
           args.rstd.as<const float>(), args.residual.as<const T>(), rows, args.x.size(-1));
  });
}

} // namespace triax::cuda
