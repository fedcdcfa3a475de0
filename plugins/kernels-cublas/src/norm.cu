// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019): a block for each row.
#include "block.cuh"
#include "kernels.hpp"
#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"
#include "types.hpp"

namespace triax::cublas {

namespace {

using cuda::launch_stream;

/// mean: null for rms.
template <class T>
__global__ void norm_forward(T* y, const T* x, const T* weight, const T* bias, float* mean_of, float* rstd_of,
                             std::int64_t rows, std::int64_t n, float eps) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * n;
    float mean = 0, square = 0;
    if (mean_of) {
      for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) mean += value_of(in[j]);
      mean = block_sum(mean) / static_cast<float>(n);
    }
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float away = value_of(in[j]) - mean;
      square += away * away;
    }
    const float rstd = 1 / sqrtf(block_sum(square) / static_cast<float>(n) + eps);
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float normed = (value_of(in[j]) - mean) * rstd * value_of(weight[j]);
      y[row * n + j] = rounded<T>(mean_of ? normed + value_of(bias[j]) : normed);
    }
    if (threadIdx.x != 0) continue;
    if (mean_of) mean_of[row] = mean;
    rstd_of[row] = rstd;
  }
}

/// With g = dy * weight and z the normalised x: dx = rstd * (g - mean(g) - z * mean(g z)); rms has no mean(g).
template <class T>
__global__ void norm_backward_input(T* dx, const T* dy, const T* x, const T* weight, const float* mean_of,
                                    const float* rstd_of, const T* residual, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t first = row * n;
    const float mean = mean_of ? mean_of[row] : 0.0f, rstd = rstd_of[row];
    float sum_g = 0, sum_gz = 0;
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float g = value_of(dy[first + j]) * value_of(weight[j]);
      sum_g += g;
      sum_gz += g * (value_of(x[first + j]) - mean) * rstd;
    }
    sum_g = block_sum(sum_g);
    sum_gz = block_sum(sum_gz);
    const float mean_g = mean_of ? sum_g / static_cast<float>(n) : 0.0f, mean_gz = sum_gz / static_cast<float>(n);
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const float g = value_of(dy[first + j]) * value_of(weight[j]), z = (value_of(x[first + j]) - mean) * rstd;
      const float of_norm = rstd * (g - mean_g - z * mean_gz);
      dx[first + j] = rounded<T>(residual ? of_norm + value_of(residual[first + j]) : of_norm);
    }
  }
}

} // namespace

void CublasKernels::do_norm_fwd(const NormFwd& args, const OpContext& context) {
  const std::int64_t rows = rows_of(args.x);
  if (rows == 0) return;
  const auto grid = grid_of_rows(rows);
  const cudaStream_t stream = launch_stream(context.stream);
  const bool layer = args.kind == NormKind::layer;
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    norm_forward<<<grid.blocks, grid.threads, 0, stream>>>(
        args.y.as<T>(), args.x.as<const T>(), args.weight.as<const T>(), args.bias.as<const T>(),
        layer ? args.mean.as<float>() : nullptr, args.rstd.as<float>(), rows, args.x.size(-1),
        static_cast<float>(args.eps));
  });
  TRIAX_CUDA_LAUNCHED("norm_fwd");
}

void CublasKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext& context) {
  const std::int64_t rows = rows_of(args.x);
  if (rows == 0) return;
  const auto grid = grid_of_rows(rows);
  const cudaStream_t stream = launch_stream(context.stream);
  const bool layer = args.kind == NormKind::layer;
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    norm_backward_input<<<grid.blocks, grid.threads, 0, stream>>>(
        args.dx.as<T>(), args.dy.as<const T>(), args.x.as<const T>(), args.weight.as<const T>(),
        layer ? args.mean.as<const float>() : nullptr, args.rstd.as<const float>(),
        args.residual.empty() ? nullptr : args.residual.as<const T>(), rows, args.x.size(-1));
  });
  TRIAX_CUDA_LAUNCHED("norm_bwd_input");
}

} // namespace triax::cublas
