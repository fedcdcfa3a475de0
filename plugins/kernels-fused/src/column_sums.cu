// SPDX-License-Identifier: Apache-2.0
// Sums over rows: gradients of biases and norms. A block adds a part of the rows, which are split by their number only,
// for the columns of one load of a warp; each of its warps takes every eighth row. Then one thread per column adds the
// parts in order.
#include "flat.cuh"
#include "kernels.hpp"
#include "scratch.hpp"

namespace triax::kernels_fused {

namespace {

cuda::Parts parts_of_rows(std::int64_t rows) {
  return cuda::parts_of(rows, 64, 64);
}

template <class T>
inline constexpr std::int64_t kTile = static_cast<std::int64_t>(kWarpSize) * kVec<T>; // columns per block

/// The terms of each column: dy, and for a norm's weight dy times the normalized x.
template <class T>
struct ColumnTerms {
  const T *dy, *x;          // [rows, n]; x: null for a bias only
  const float *mean, *rstd; // [rows]; mean: null for rms
  std::int64_t rows, n;
  bool aligned;
};

template <class T>
struct ColumnSums {
  Floats<T> plain, normed;
};

template <class T>
__device__ __forceinline__ void add_row(ColumnSums<T>& sums, const ColumnTerms<T>& terms, std::int64_t row,
                                        std::int64_t column) {
  const int valid = valid_elements<T>(terms.n, column);
  const std::int64_t offset = row * terms.n + column;
  const Floats<T> dy = load(terms.dy + offset, valid, terms.aligned);
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) sums.plain.values[i] += dy.values[i];
  if (!terms.x) return;
  const Floats<T> x = load(terms.x + offset, valid, terms.aligned);
  const float mean = terms.mean ? terms.mean[row] : 0.0f, rstd = terms.rstd[row];
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) sums.normed.values[i] += dy.values[i] * (x.values[i] - mean) * rstd;
}

/// One block per part of the rows and 32 vectors of columns: one lane per vector, every eighth row per warp.
///
/// plain, normed [parts, n]: sums of dy, and of dy times the normalized x; either may be null.
template <class T>
__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    sum_columns(float* plain, float* normed, const __grid_constant__ ColumnTerms<T> terms, std::int64_t tiles,
                cuda::Parts parts) {
  constexpr unsigned kWarps = kBlockSize / kWarpSize;
  __shared__ float of_warps[kWarps][2 * kVec<T>][kWarpSize]; // lanes are in different banks
  const unsigned lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  for (std::int64_t item = blockIdx.x; item < tiles * parts.count; item += gridDim.x) {
    const std::int64_t part = item / tiles, column = item % tiles * kTile<T> + lane * kVec<T>;
    const std::int64_t begin = part * parts.length;
    const std::int64_t end = begin + parts.length < terms.rows ? begin + parts.length : terms.rows;
    ColumnSums<T> sums{};
    if (column < terms.n) {
      for (std::int64_t row = begin + warp; row < end; row += kWarps) add_row(sums, terms, row, column);
    }
    __syncthreads(); // the previous item's sums have been read
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      of_warps[warp][i][lane] = sums.plain.values[i];
      of_warps[warp][kVec<T> + i][lane] = sums.normed.values[i];
    }
    __syncthreads();
    for (int i = static_cast<int>(warp); i < valid_elements<T>(terms.n, column); i += kWarps) {
      // Warp w adds element w of each lane's vector over all warps.
      float of_plain = 0, of_normed = 0;
#pragma unroll
      for (unsigned other = 0; other < kWarps; ++other) {
        of_plain += of_warps[other][i][lane];
        of_normed += of_warps[other][kVec<T> + i][lane];
      }
      if (plain) plain[part * terms.n + column + i] = of_plain;
      if (normed) normed[part * terms.n + column + i] = of_normed;
    }
  }
}

/// One thread per column.
///
/// to [n] += the parts, in order.
template <class To>
__global__ void __launch_bounds__(kBlockSize)
    add_partials(To* to, const float* partials, std::int64_t n, std::int64_t parts) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t column = stride.first; column < n; column += stride.step) {
    float sum = 0;
#pragma unroll 16 // parallel loads: there are too few threads to hide their latency
    for (std::int64_t part = 0; part < parts; ++part) sum += partials[part * n + column];
    to[column] = from_float<To>(to_float(to[column]) + sum);
  }
}

/// Floats in one set of sums of parts.
std::size_t partials_count(const TensorView& dy) {
  return static_cast<std::size_t>(parts_of_rows(cuda::rows_of(dy)).count * dy.size(-1));
}

template <class T>
void launch_sums(Op op, float* plain, float* normed, const ColumnTerms<T>& terms, const OpContext& context) {
  const std::int64_t tiles = (terms.n + kTile<T> - 1) / kTile<T>;
  const cuda::Parts parts = parts_of_rows(terms.rows);
  const cuda::Launch launch(op, cuda::grid_of_rows(tiles * parts.count), context);
  launch(sum_columns<T>, plain, normed, terms, tiles, parts);
}

void launch_add_partials(Op op, const TensorView& to, const float* partials, std::int64_t rows,
                         const OpContext& context) {
  const std::int64_t n = to.elements();
  cuda::by_type(to.dtype(), [&]<class To>(To) {
    launch_items(op, context, n, add_partials<To>, to.as<To>(), partials, n, parts_of_rows(rows).count);
  });
}

} // namespace

std::size_t scratch_of(const BiasBwd& args) {
  return partials_count(args.dy) * sizeof(float);
}
std::size_t scratch_of(const NormBwdWeight& args) {
  return partials_count(args.dy) * sizeof(float) * (args.dbias.empty() ? 1 : 2);
}

void FusedKernels::do_bias_bwd(const BiasBwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* sums = reinterpret_cast<float*>(context.scratch.data());
  cuda::by_type(args.dy.dtype(), [&]<class T>(T) {
    const ColumnTerms<T> terms{args.dy.as<const T>(),         nullptr, nullptr, nullptr, rows, n,
                               aligned_rows<T>(n, {&args.dy})};
    launch_sums(Op::bias_bwd, sums, nullptr, terms, context);
  });
  launch_add_partials(Op::bias_bwd, args.dbias, sums, rows, context);
}

void FusedKernels::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* of_weight = reinterpret_cast<float*>(context.scratch.data());
  float* of_bias = args.dbias.empty() ? nullptr : of_weight + partials_count(args.dy);
  cuda::by_type(args.dy.dtype(), [&]<class T>(T) {
    const ColumnTerms<T> terms{args.dy.as<const T>(),
                               args.x.as<const T>(),
                               args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                               args.rstd.as<const float>(),
                               rows,
                               n,
                               aligned_rows<T>(n, {&args.dy, &args.x})};
    launch_sums(Op::norm_bwd_weight, of_bias, of_weight, terms, context);
  });
  launch_add_partials(Op::norm_bwd_weight, args.dweight, of_weight, rows, context);
  if (of_bias) launch_add_partials(Op::norm_bwd_weight, args.dbias, of_bias, rows, context);
}

} // namespace triax::kernels_fused
