// SPDX-License-Identifier: Apache-2.0
// Sums over rows: gradients of biases and norms. A block adds a part of the rows, which are split by their number only,
// for the columns of one load of a warp; each of its warps takes every eighth row. Then one thread per column adds the
// parts in order; for a norm's weight and bias in one launch.
#include "flat.cuh"
#include "fused_kernels.hpp"
#include "scratch.hpp"
#include "warp.cuh"

namespace triax::kernels_fused {

namespace {

cuda::Parts parts_of_rows(std::int64_t rows) {
  return cuda::parts_of(rows, 64, 64);
}

inline constexpr unsigned kWarpsPerBlock = kBlockSize / kWarpSize;
template <class T>
inline constexpr std::int64_t kTile = static_cast<std::int64_t>(kWarpSize) * kVec<T>; // columns per block

/// The terms of each column: dy, and for a norm's weight dy times the normalized x.
template <class T>
struct ColumnInput {
  const T *dy = nullptr, *x = nullptr;          // [rows, n]
  const float *mean = nullptr, *rstd = nullptr; // [rows]; mean: null for rms
  std::int64_t rows = 0, n = 0;
  bool aligned = false;
};

/// Sums of the columns of a vector.
template <class T>
struct ColumnSums {
  Floats<T> of_bias, of_weight;
};

/// Adds every eighth of the rows [first_row, end) to the sums of the vector at element `column`. kWhole: the vector is
/// whole and aligned in every row. kNorm: also adds the terms of the norm's weight.
template <bool kWhole, bool kNorm, class T>
__device__ __forceinline__ void add_rows(ColumnSums<T>& sums, const ColumnInput<T>& input, std::int64_t first_row,
                                         std::int64_t end, std::int64_t column) {
  const int valid = kWhole ? kVec<T> : valid_elements<T>(input.n, column);
  const bool centered = kNorm && input.mean;
  std::int64_t offset = first_row * input.n + column;
  const std::int64_t step = kWarpsPerBlock * input.n;
#pragma unroll(kWhole ? 2 : 1) // loads of two rows are in flight
  for (std::int64_t row = first_row; row < end; row += kWarpsPerBlock, offset += step) {
    const Floats<T> dy = load(input.dy + offset, valid, kWhole);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) sums.of_bias[i] += dy[i];
    if constexpr (kNorm) {
      const Floats<T> x = load(input.x + offset, valid, kWhole);
      const float mean = centered ? input.mean[row] : 0.0f, rstd = input.rstd[row];
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sums.of_weight[i] += dy[i] * (x[i] - mean) * rstd;
    }
  }
}

/// One block per part of the rows and 32 vectors of columns: one lane per vector, every eighth row per warp.
///
/// bias_sums, weight_sums [parts, n]: sums of dy, and with kNorm of dy times the normalized x. With kNorm, bias_sums
/// may be null.
template <class T, bool kNorm>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    sum_columns(float* bias_sums, float* weight_sums, const __grid_constant__ ColumnInput<T> input, std::int64_t tiles,
                cuda::Parts parts) {
  // [.][element of a vector][vector]. Lanes write in different banks, and with this pitch they also read 32 elements
  // that follow each other from different banks.
  constexpr int kPitch = kWarpSize + kWarpSize / kVec<T>;
  __shared__ float warp_sums[kWarpsPerBlock][(kNorm ? 2 : 1) * kVec<T>][kPitch];
  const int lane = lane_index(), warp = warp_index();
  for (std::int64_t item = blockIdx.x; item < tiles * parts.count; item += gridDim.x) {
    const std::int64_t part = item / tiles, tile_begin = item % tiles * kTile<T>;
    const std::int64_t column = tile_begin + lane * kVec<T>;
    const std::int64_t begin = part * parts.length;
    const std::int64_t end = begin + parts.length < input.rows ? begin + parts.length : input.rows;
    ColumnSums<T> sums{};
    if (column < input.n) {
      input.aligned ? add_rows<true, kNorm>(sums, input, begin + warp, end, column)
                    : add_rows<false, kNorm>(sums, input, begin + warp, end, column);
    }
    __syncthreads(); // the previous item's sums have been read
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      warp_sums[warp][i][lane] = sums.of_bias[i];
      if constexpr (kNorm) warp_sums[warp][kVec<T> + i][lane] = sums.of_weight[i];
    }
    __syncthreads();
    const std::int64_t left = input.n - tile_begin;
    for (int i = thread_index(); i < kTile<T> && i < left; i += static_cast<int>(kBlockSize)) {
      float of_bias = 0, of_weight = 0;
#pragma unroll
      for (unsigned other = 0; other < kWarpsPerBlock; ++other) {
        of_bias += warp_sums[other][i % kVec<T>][i / kVec<T>];
        if constexpr (kNorm) of_weight += warp_sums[other][kVec<T> + i % kVec<T>][i / kVec<T>];
      }
      const std::int64_t to = part * input.n + tile_begin + i;
      if (!kNorm || bias_sums) bias_sums[to] = of_bias;
      if constexpr (kNorm) weight_sums[to] = of_weight;
    }
  }
}

/// A target of sums, [n], and its partial sums, [parts, n]: for a kernel.
template <class To>
struct TargetData {
  To* to;
  const float* partials;
};

/// One thread per column of a target. second: if `columns` is 2 n.
///
/// to [n] += the parts, in order.
template <class To>
__global__ void __launch_bounds__(kBlockSize) add_partials(TargetData<To> first, TargetData<To> second,
                                                           std::int64_t columns, std::int64_t n, std::int64_t parts) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < columns; item += stride.step) {
    const bool of_first = item < n;
    To* to = of_first ? first.to : second.to;
    const float* partials = of_first ? first.partials : second.partials;
    const std::int64_t column = of_first ? item : item - n;
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

template <bool kNorm, class T>
void launch_sums(Op op, float* bias_sums, float* weight_sums, const ColumnInput<T>& input, const OpContext& context) {
  const std::int64_t tiles = ceil_div(input.n, kTile<T>);
  const cuda::Parts parts = parts_of_rows(input.rows);
  const cuda::Launch launch(op, cuda::grid_of_blocks(tiles * parts.count), context);
  launch(sum_columns<T, kNorm>, bias_sums, weight_sums, input, tiles, parts);
}

/// A target of sums and its partial sums, as the operation has them.
struct Target {
  const TensorView& to;
  const float* partials;
};

/// second: of the type of the first, or null.
void launch_add_partials(Op op, const Target& first, const Target* second, std::int64_t rows,
                         const OpContext& context) {
  const std::int64_t n = first.to.elements(), columns = second ? 2 * n : n;
  cuda::by_type(first.to.dtype(), [&]<class To>(To) {
    const auto data = [](const Target& target) { return TargetData<To>{target.to.as<To>(), target.partials}; };
    launch_items(op, context, columns, add_partials<To>, data(first), data(second ? *second : first), columns, n,
                 parts_of_rows(rows).count);
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
    const ColumnInput<T> input{
        .dy = args.dy.as<const T>(), .rows = rows, .n = n, .aligned = aligned_rows<T>(n, {&args.dy})};
    launch_sums<false>(Op::bias_bwd, sums, nullptr, input, context);
  });
  launch_add_partials(Op::bias_bwd, {args.dbias, sums}, nullptr, rows, context);
}

void FusedKernels::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* weight_sums = reinterpret_cast<float*>(context.scratch.data());
  float* bias_sums = args.dbias.empty() ? nullptr : weight_sums + partials_count(args.dy);
  cuda::by_type(args.dy.dtype(), [&]<class T>(T) {
    const ColumnInput<T> input{args.dy.as<const T>(),
                               args.x.as<const T>(),
                               args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                               args.rstd.as<const float>(),
                               rows,
                               n,
                               aligned_rows<T>(n, {&args.dy, &args.x})};
    launch_sums<true>(Op::norm_bwd_weight, bias_sums, weight_sums, input, context);
  });
  const Target weight{args.dweight, weight_sums}, bias{args.dbias, bias_sums};
  const bool together = bias_sums && args.dbias.dtype() == args.dweight.dtype();
  launch_add_partials(Op::norm_bwd_weight, weight, together ? &bias : nullptr, rows, context);
  if (bias_sums && !together) launch_add_partials(Op::norm_bwd_weight, bias, nullptr, rows, context);
}

} // namespace triax::kernels_fused
