// SPDX-License-Identifier: Apache-2.0
// Sums over rows, for the gradients of biases and norm weights. First, each part of the rows is summed into scratch
// memory; the shape alone determines the parts. Then the partial sums of each column are added in order.
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

constexpr unsigned kColumns = 32;                      // columns of a block: one warp loads a row of them
constexpr unsigned kWarps = kBlockSize / kColumns;     // rows that a block takes at a time
constexpr std::int64_t kMinRows = 64, kMaxParts = 128; // least rows of a part; most parts

Parts parts_of_rows(std::int64_t rows) {
  return parts_of(rows, kMinRows, kMaxParts);
}

/// The terms of one row in the sums of a column: x for a bias, y for a norm's weight.
template <class T>
struct BiasTerm {
  const T* dy;
  std::int64_t n;
  __device__ float2 operator()(std::int64_t row, std::int64_t column) const {
    return {value_of(dy[row * n + column]), 0.0f};
  }
};
template <class T>
struct NormTerm {
  const T *dy, *x;
  const float *mean, *rstd; // mean: null for rms
  std::int64_t n;
  __device__ float2 operator()(std::int64_t row, std::int64_t column) const {
    const float g = value_of(dy[row * n + column]);
    const float centered = value_of(x[row * n + column]) - (mean ? mean[row] : 0.0f);
    return {g, g * centered * rstd[row]};
  }
};

/// One block per part of the rows and 32 columns: one lane per column, every eighth row per warp.
///
/// bias_sums, weight_sums [parts, n]; either may be null.
template <class Term>
__global__ void partial_column_sums(float* bias_sums, float* weight_sums, Term term, std::int64_t rows, std::int64_t n,
                                    Parts parts) {
  __shared__ float2 warp_sums[kWarps][kColumns];
  const unsigned warp = threadIdx.x / kColumns, lane = threadIdx.x % kColumns;
  const std::int64_t tiles = ceil_div(n, kColumns);
  for (std::int64_t item = blockIdx.x; item < tiles * parts.count; item += gridDim.x) {
    const std::int64_t part = item / tiles, column = item % tiles * kColumns + lane;
    const std::int64_t begin = part * parts.length, end = begin + parts.length < rows ? begin + parts.length : rows;
    float2 sum{0.0f, 0.0f};
    if (column < n) {
      for (std::int64_t row = begin + warp; row < end; row += kWarps) {
        const float2 one = term(row, column);
        sum.x += one.x;
        sum.y += one.y;
      }
    }
    __syncthreads(); // the previous item has read warp_sums
    warp_sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= n) continue;
    for (unsigned other = 1; other < kWarps; ++other) {
      sum.x += warp_sums[other][lane].x;
      sum.y += warp_sums[other][lane].y;
    }
    if (bias_sums) bias_sums[part * n + column] = sum.x;
    if (weight_sums) weight_sums[part * n + column] = sum.y;
  }
}

/// One thread per column.
template <class To>
__global__ void add_column_sums(To* to, const float* partials, std::int64_t n, std::int64_t parts) {
  const GridStride stride = grid_stride();
  for (std::int64_t column = stride.first; column < n; column += stride.step) {
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += partials[part * n + column];
    to[column] = rounded<To>(value_of(to[column]) + sum);
  }
}

template <class Term>
void launch_sums(Op op, float* bias_sums, float* weight_sums, const Term& term, std::int64_t rows, std::int64_t n,
                 const OpContext& context) {
  const Parts parts = parts_of_rows(rows);
  const Launch launch(op, grid_of_blocks(ceil_div(n, kColumns) * parts.count), context);
  launch(partial_column_sums<Term>, bias_sums, weight_sums, term, rows, n, parts);
}

/// to += the parts, in their order.
void launch_add(Op op, const TensorView& to, const float* partials, std::int64_t rows, const OpContext& context) {
  over_elements(op, to, context, [&]<class To>(To, const Launch& launch, std::int64_t n) {
    launch(add_column_sums<To>, to.as<To>(), partials, n, parts_of_rows(rows).count);
  });
}

/// Floats of one set of partial sums.
std::size_t partials_count(const TensorView& dy) {
  return static_cast<std::size_t>(parts_of_rows(rows_of(dy)).count * dy.size(-1));
}

} // namespace

std::size_t scratch_of(const BiasBwd& args) {
  return partials_count(args.dy) * sizeof(float);
}
std::size_t scratch_of(const NormBwdWeight& args) {
  return partials_count(args.dy) * sizeof(float) * (args.dbias.empty() ? 1 : 2);
}

void Primitives::do_bias_bwd(const BiasBwd& args, const OpContext& context) {
  const std::int64_t rows = rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* sums = reinterpret_cast<float*>(context.scratch.data());
  by_type(args.dy.dtype(), [&]<class T>(T) {
    launch_sums(Op::bias_bwd, sums, nullptr, BiasTerm<T>{args.dy.as<const T>(), n}, rows, n, context);
  });
  launch_add(Op::bias_bwd, args.dbias, sums, rows, context);
}

void Primitives::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext& context) {
  const std::int64_t rows = rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* weight_sums = reinterpret_cast<float*>(context.scratch.data());
  float* bias_sums = args.dbias.empty() ? nullptr : weight_sums + partials_count(args.dy);
  const float* mean = args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr;
  by_type(args.dy.dtype(), [&]<class T>(T) {
    const NormTerm<T> term{args.dy.as<const T>(), args.x.as<const T>(), mean, args.rstd.as<const float>(), n};
    launch_sums(Op::norm_bwd_weight, bias_sums, weight_sums, term, rows, n, context);
  });
  launch_add(Op::norm_bwd_weight, args.dweight, weight_sums, rows, context);
  if (bias_sums) launch_add(Op::norm_bwd_weight, args.dbias, bias_sums, rows, context);
}

} // namespace triax::cuda
