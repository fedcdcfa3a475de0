// SPDX-License-Identifier: Apache-2.0
// Sums over rows: gradients of biases and norms. A block adds a part of the rows, which are split by their number only,
// for the columns of one load of a warp; each of its warps takes every eighth row. Then one thread per column adds the
// parts in order; for a norm's weight and bias in one launch.
#include "flat.cuh"
#include "fused_kernels.hpp"
#include "scratch.hpp"

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

/// Adds every eighth of the rows [row, end) to the sums of the vector at element `column`. kWhole: the vector is whole
/// and aligned in every row. kNormed: adds the second sums, too.
template <bool kWhole, bool kNormed, class T>
__device__ __forceinline__ void add_rows(ColumnSums<T>& sums, const ColumnTerms<T>& terms, std::int64_t row,
                                         std::int64_t end, std::int64_t column) {
  const int valid = kWhole ? kVec<T> : valid_elements<T>(terms.n, column);
  const bool centered = kNormed && terms.mean;
  std::int64_t offset = row * terms.n + column;
  const std::int64_t step = kWarpsPerBlock * terms.n;
#pragma unroll(kWhole ? 2 : 1) // loads of two rows are in flight
  for (; row < end; row += kWarpsPerBlock, offset += step) {
    const Floats<T> dy = load(terms.dy + offset, valid, kWhole);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) sums.plain[i] += dy[i];
    if constexpr (kNormed) {
      const Floats<T> x = load(terms.x + offset, valid, kWhole);
      const float mean = centered ? terms.mean[row] : 0.0f, rstd = terms.rstd[row];
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sums.normed[i] += dy[i] * (x[i] - mean) * rstd;
    }
  }
}
template <class T>
__device__ __forceinline__ void add_rows(ColumnSums<T>& sums, const ColumnTerms<T>& terms, std::int64_t row,
                                         std::int64_t end, std::int64_t column) {
  if (terms.x) {
    terms.aligned ? add_rows<true, true>(sums, terms, row, end, column)
                  : add_rows<false, true>(sums, terms, row, end, column);
  } else {
    terms.aligned ? add_rows<true, false>(sums, terms, row, end, column)
                  : add_rows<false, false>(sums, terms, row, end, column);
  }
}

/// One block per part of the rows and 32 vectors of columns: one lane per vector, every eighth row per warp.
///
/// plain, normed [parts, n]: sums of dy, and of dy times the normalized x; either may be null.
template <class T>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    sum_columns(float* plain, float* normed, const __grid_constant__ ColumnTerms<T> terms, std::int64_t tiles,
                cuda::Parts parts) {
  // [.][element of a vector][vector]. Lanes write in different banks, and with this pitch they also read 32 elements
  // that follow each other from different banks.
  constexpr int kPitch = kWarpSize + kWarpSize / kVec<T>;
  __shared__ float warp_sums[kWarpsPerBlock][2 * kVec<T>][kPitch];
  const unsigned lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  for (std::int64_t item = blockIdx.x; item < tiles * parts.count; item += gridDim.x) {
    const std::int64_t part = item / tiles, tile_begin = item % tiles * kTile<T>;
    const std::int64_t column = tile_begin + lane * kVec<T>;
    const std::int64_t begin = part * parts.length;
    const std::int64_t end = begin + parts.length < terms.rows ? begin + parts.length : terms.rows;
    ColumnSums<T> sums{};
    if (column < terms.n) add_rows(sums, terms, begin + warp, end, column);
    __syncthreads(); // the previous item's sums have been read
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      warp_sums[warp][i][lane] = sums.plain[i];
      warp_sums[warp][kVec<T> + i][lane] = sums.normed[i];
    }
    __syncthreads();
    const std::int64_t left = terms.n - tile_begin;
    for (int one = static_cast<int>(threadIdx.x); one < kTile<T> && one < left; one += kBlockSize) {
      float of_plain = 0, of_normed = 0;
#pragma unroll
      for (unsigned other = 0; other < kWarpsPerBlock; ++other) {
        of_plain += warp_sums[other][one % kVec<T>][one / kVec<T>];
        of_normed += warp_sums[other][kVec<T> + one % kVec<T>][one / kVec<T>];
      }
      if (plain) plain[part * terms.n + tile_begin + one] = of_plain;
      if (normed) normed[part * terms.n + tile_begin + one] = of_normed;
    }
  }
}

/// A target of sums, [n], and its partial sums, [parts, n].
template <class To>
struct Partials {
  To* to;
  const float* sums;
};

/// One thread per column of a target. second: if `columns` is 2 n.
///
/// to [n] += the parts, in order.
template <class To>
__global__ void __launch_bounds__(kBlockSize)
    add_partials(Partials<To> first, Partials<To> second, std::int64_t columns, std::int64_t n, std::int64_t parts) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < columns; item += stride.step) {
    const bool of_first = item < n;
    To* to = of_first ? first.to : second.to;
    const float* sums = of_first ? first.sums : second.sums;
    const std::int64_t column = of_first ? item : item - n;
    float sum = 0;
#pragma unroll 16 // parallel loads: there are too few threads to hide their latency
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * n + column];
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
  const cuda::Launch launch(op, cuda::grid_of_blocks(tiles * parts.count), context);
  launch(sum_columns<T>, plain, normed, terms, tiles, parts);
}

struct Target {
  const TensorView& to;
  const float* partials;
};

/// second: of the type of the first, or null.
void launch_add_partials(Op op, const Target& first, const Target* second, std::int64_t rows,
                         const OpContext& context) {
  const std::int64_t n = first.to.elements(), columns = second ? 2 * n : n;
  cuda::by_type(first.to.dtype(), [&]<class To>(To) {
    const auto partials = [](const Target& target) { return Partials<To>{target.to.as<To>(), target.partials}; };
    launch_items(op, context, columns, add_partials<To>, partials(first), partials(second ? *second : first), columns,
                 n, parts_of_rows(rows).count);
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
  launch_add_partials(Op::bias_bwd, {args.dbias, sums}, nullptr, rows, context);
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
  const Target weight{args.dweight, of_weight}, bias{args.dbias, of_bias};
  const bool together = of_bias && args.dbias.dtype() == args.dweight.dtype();
  launch_add_partials(Op::norm_bwd_weight, weight, together ? &bias : nullptr, rows, context);
  if (of_bias && !together) launch_add_partials(Op::norm_bwd_weight, bias, nullptr, rows, context);
}

} // namespace triax::kernels_fused
