// SPDX-License-Identifier: Apache-2.0
// Sums over rows: gradients of biases and norms. A team has a part of the rows, determined by their number only, and
// the columns of one load of a warp; each of its eight warps takes every eighth row. Then one thread per column adds
// the parts in order.
//
// Threads: the rank's main thread launches. Ownership: the caller's views; partial sums are in the call's scratch.
// Blocking: never. Errors: those of the launcher.
#pragma once

#include "packs.hpp"
#include "triax/cuda/launch.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

inline cuda::Parts parts_of_rows(std::int64_t rows) {
  return cuda::parts_of(rows, 64, 64);
}

/// The terms of a column: dy, and for a norm's weight dy times the normalized x.
template <class T>
struct ColumnTerms {
  const T *dy, *x;          // x: null for a bias only
  const float *mean, *rstd; // mean: null for rms
  std::int64_t n;
  bool packed;
};

template <class T>
struct ColumnSums {
  Values<T> plain, normed;
};

/// plain, normed [parts, n]; either may be null.
template <class T>
struct SumParts {
  ColumnTerms<T> terms;
  float *plain, *normed;
  std::int64_t rows, tiles;
  cuda::Parts parts;

  static constexpr std::int64_t kTile = static_cast<std::int64_t>(kWarp) * kPack<T>; // columns per team

  TRIAX_LANE void add_row(ColumnSums<T>& sums, std::int64_t row, std::int64_t at) const {
    const int live = live_of<T>(terms.n, at);
    const std::int64_t place = row * terms.n + at;
    const Values<T> dy = load(terms.dy + place, live, terms.packed);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) sums.plain.at[i] += dy.at[i];
    if (!terms.x) return;
    const Values<T> x = load(terms.x + place, live, terms.packed);
    const float mean = terms.mean ? terms.mean[row] : 0.0f, rstd = terms.rstd[row];
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) sums.normed.at[i] += dy.at[i] * (x.at[i] - mean) * rstd;
  }

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t item) const {
    const std::int64_t part = item / tiles, first_column = item % tiles * kTile;
    const std::int64_t begin = part * parts.length, end = begin + parts.length < rows ? begin + parts.length : rows;
    typename Team::template Each<ColumnSums<T>> sums;
    team.lanes([&](unsigned lane) {
      ColumnSums<T> of_lane{};
      const std::int64_t at = first_column + lane % kWarp * kPack<T>;
      if (at < terms.n) {
        for (std::int64_t row = begin + lane / kWarp; row < end; row += Team::kLanes / kWarp) add_row(of_lane, row, at);
      }
      sums[lane] = of_lane;
    });
    team.shared(sums, [&](unsigned lane, const ColumnSums<T>* of_lanes) {
      const std::int64_t at = first_column + lane * kPack<T>;
      if (lane >= kWarp || at >= terms.n) return;
      for (int i = 0; i < live_of<T>(terms.n, at); ++i) {
        float of_plain = 0, of_normed = 0;
        for (unsigned warp = 0; warp < Team::kLanes / kWarp; ++warp) {
          of_plain += of_lanes[warp * kWarp + lane].plain.at[i];
          of_normed += of_lanes[warp * kWarp + lane].normed.at[i];
        }
        if (plain) plain[part * terms.n + at + i] = of_plain;
        if (normed) normed[part * terms.n + at + i] = of_normed;
      }
    });
  }
};

/// to [n] += the parts, in order.
template <class To>
struct AddParts {
  To* to;
  const float* of_parts;
  std::int64_t n, parts;

  TRIAX_LANE void operator()(std::int64_t column) const {
    float sum = 0;
    TRIAX_UNROLL_BY_16 // parallel loads: there are too few threads to hide their latency
        for (std::int64_t part = 0; part < parts; ++part) sum += of_parts[part * n + column];
    to[column] = narrowed<To>(widened(to[column]) + sum);
  }
};

/// Floats in one set of partial sums.
inline std::size_t partial_sums(const TensorView& dy) {
  return static_cast<std::size_t>(parts_of_rows(cuda::rows_of(dy)).count * dy.size(-1));
}
inline std::size_t scratch_of(const BiasBwd& args) {
  return partial_sums(args.dy) * sizeof(float);
}
inline std::size_t scratch_of(const NormBwdWeight& args) {
  return partial_sums(args.dy) * sizeof(float) * (args.dbias.empty() ? 1 : 2);
}

template <class T, class Launcher>
void sum_parts(const ColumnTerms<T>& terms, float* plain, float* normed, std::int64_t rows, const Launcher& launcher) {
  const std::int64_t tiles = (terms.n + SumParts<T>::kTile - 1) / SumParts<T>::kTile;
  const cuda::Parts parts = parts_of_rows(rows);
  launcher.template teams<kBlock>(SumParts<T>{terms, plain, normed, rows, tiles, parts}, tiles * parts.count);
}

template <class Launcher>
void add_parts(const TensorView& to, const float* of_parts, std::int64_t rows, const Launcher& launcher) {
  const std::int64_t n = to.elements();
  cuda::by_type(to.dtype(), [&]<class To>(To) {
    launcher.items(AddParts<To>{to.as<To>(), of_parts, n, parts_of_rows(rows).count}, n);
  });
}

template <class Launcher>
void bias_bwd(const BiasBwd& args, const Launcher& launcher) {
  const std::int64_t rows = cuda::rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* sums = reinterpret_cast<float*>(launcher.scratch());
  cuda::by_type(args.dy.dtype(), [&]<class T>(T) {
    sum_parts(ColumnTerms<T>{args.dy.as<const T>(), nullptr, nullptr, nullptr, n, packed_rows<T>(n, {&args.dy})}, sums,
              nullptr, rows, launcher);
  });
  add_parts(args.dbias, sums, rows, launcher);
}

template <class Launcher>
void norm_bwd_weight(const NormBwdWeight& args, const Launcher& launcher) {
  const std::int64_t rows = cuda::rows_of(args.dy), n = args.dy.size(-1);
  if (rows == 0) return;
  auto* of_weight = reinterpret_cast<float*>(launcher.scratch());
  float* of_bias = args.dbias.empty() ? nullptr : of_weight + partial_sums(args.dy);
  cuda::by_type(args.dy.dtype(), [&]<class T>(T) {
    const ColumnTerms<T> terms{args.dy.as<const T>(),
                               args.x.as<const T>(),
                               args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                               args.rstd.as<const float>(),
                               n,
                               packed_rows<T>(n, {&args.dy, &args.x})};
    sum_parts(terms, of_bias, of_weight, rows, launcher);
  });
  add_parts(args.dweight, of_weight, rows, launcher);
  if (of_bias) add_parts(args.dbias, of_bias, rows, launcher);
}

} // namespace triax::kernels_fused
