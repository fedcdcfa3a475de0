// SPDX-License-Identifier: Apache-2.0
// The embedding, one thread per vector of a token's row, and its gradient.
//
// For the gradient, the occurrences of tokens are sorted by token, equal tokens by row. Then one thread per part of a
// token's row adds the token's occurrences in that order. The sorted position of an occurrence is the number of
// occurrences before it. A warp counts these by comparing with all occurrences, without atomics.
#include "flat.cuh"
#include "kernels.hpp"
#include "row.cuh"
#include "scratch.hpp"

namespace triax::kernels_fused {

namespace {

/// The table's rows, of h elements, of tokens from `begin` on.
template <class T>
struct Table {
  T* rows;
  std::int64_t begin, valid, h;
};

/// One thread per vector of a row of y, in a grid-stride loop. Tokens outside of the table get zeros.
template <class T>
__global__ void __launch_bounds__(kBlockSize) copy_token_rows(T* y, Table<const T> table, const std::int32_t* tokens,
                                                              std::int64_t items, std::int64_t vecs, bool aligned) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < items; item += stride.step) {
    const std::int64_t position = item / vecs, column = item % vecs * kVec<T>;
    const std::int64_t row = tokens[position] - table.begin;
    const int valid = row < 0 || row >= table.valid ? 0 : valid_elements<T>(table.h, column);
    const T* from = table.rows + (valid > 0 ? row : 0) * table.h + column;
    T* to = y + position * table.h + column;
    if (aligned) {
      const Vec16<T> vec = valid > 0 ? load_vec(from, valid, true) : Vec16<T>{};
      store_words(to, vec.words);
    } else {
      for (int i = 0; i < valid_elements<T>(table.h, column); ++i) to[i] = i < valid ? from[i] : T{};
    }
  }
}

/// In sorted order: the token of each occurrence, and its row in dy.
struct SortedTokens {
  std::int32_t *tokens, *rows;
};

/// One warp per occurrence of a token, of `count`.
__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    sort_tokens(SortedTokens sorted, const std::int32_t* tokens, std::int64_t count) {
  using Warp = RowMapping<kWarpSize, 0>;
  for_each_row<Warp>(count, [&](std::int64_t row) {
    const std::int32_t token = tokens[row];
    int before = 0;
    // Equal tokens count before the row, and not behind it: one comparison in each of two loops.
    std::int64_t other = thread_of_row<Warp>();
    for (; other < row; other += kWarpSize) before += tokens[other] <= token ? 1 : 0;
    for (; other < count; other += kWarpSize) before += tokens[other] < token ? 1 : 0;
    const int position = warp_reduce(before, Sum{});
    if (thread_of_row<Warp>() == 0) {
      sorted.tokens[position] = token;
      sorted.rows[position] = static_cast<std::int32_t>(row);
    }
  });
}

/// The end of the range of equal tokens that `position` starts.
__device__ __forceinline__ std::int64_t end_of_token(const SortedTokens& sorted, std::int64_t position,
                                                     std::int64_t count) {
  const std::int32_t token = sorted.tokens[position];
  std::int64_t low = position, high = count; // low has the token, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (sorted.tokens[middle] == token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

/// `whole`: kCount elements, at a multiple of their size. Else the first `valid`; the others are 0. Gradients have the
/// type of the table, or 16 bits for a table of f32: kCount is then half of their vector.
template <int kCount, class T>
__device__ __forceinline__ void load_elements(float (&out)[kCount], const T* from, int valid, bool whole) {
  static_assert(kCount == kVec<T> || 2 * kCount == kVec<T>);
  if (!whole) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = i < valid ? to_float(from[i]) : 0.0f;
    return;
  }
  Floats<T> floats;
  if constexpr (kCount == kVec<T>) {
    floats = load(from, kVec<T>, true);
  } else {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    floats = to_floats(Vec16<T>{{words.x, words.y}});
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) out[i] = floats.values[i];
}
template <class T>
__device__ __forceinline__ void store_elements(T* to, const float (&values)[kVec<T>], int valid, bool whole) {
  if (whole) {
    Floats<T> floats{};
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) floats.values[i] = values[i];
    store_words(to, from_floats(floats).words);
  } else {
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      if (i < valid) to[i] = from_float<T>(values[i]);
    }
  }
}

/// One thread per vector of the table's row and sorted position; only the first position of each token adds.
template <class T, class To>
__global__ void __launch_bounds__(kBlockSize) add_token_rows(Table<To> table, const T* dy, SortedTokens sorted,
                                                             std::int64_t count, std::int64_t parts, bool aligned) {
  constexpr int kCount = kVec<To>;
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < count * parts; item += stride.step) {
    const std::int64_t position = item / parts, column = item % parts * kCount;
    const std::int32_t token = sorted.tokens[position];
    if (position > 0 && sorted.tokens[position - 1] == token) continue;
    const std::int64_t row = token - table.begin;
    if (row < 0 || row >= table.valid) continue;
    const std::int64_t left = table.h - column;
    const int valid = left < kCount ? static_cast<int>(left) : kCount;
    To* to = table.rows + row * table.h + column;
    float sum[kCount];
    load_elements(sum, to, valid, aligned);
    const std::int64_t end = end_of_token(sorted, position, count);
#pragma unroll 4
    for (std::int64_t one = position; one < end; ++one) {
      float more[kCount];
      load_elements(more, dy + sorted.rows[one] * table.h + column, valid, aligned);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += more[i];
    }
    store_elements(to, sum, valid, aligned);
  }
}

} // namespace

std::size_t scratch_of(const EmbedBwd& args) {
  return static_cast<std::size_t>(cuda::rows_of(args.dy)) * 2 * sizeof(std::int32_t);
}

void FusedKernels::do_embed_fwd(const EmbedFwd& args, const OpContext& context) {
  const std::int64_t h = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    const std::int64_t vecs = (h + kVec<T> - 1) / kVec<T>, items = cuda::rows_of(args.y) * vecs;
    const Table<const T> table{args.table.as<const T>(), args.begin, args.valid, h};
    launch_items(Op::embed_fwd, context, items, copy_token_rows<T>, args.y.as<T>(), table,
                 args.tokens.as<const std::int32_t>(), items, vecs, aligned_rows<T>(h, {&args.y, &args.table}));
  });
}

void FusedKernels::do_embed_bwd(const EmbedBwd& args, const OpContext& context) {
  const std::int64_t count = cuda::rows_of(args.dy), h = args.dy.size(-1);
  if (count == 0) return;
  auto* scratch = reinterpret_cast<std::int32_t*>(context.scratch.data());
  const SortedTokens sorted{scratch, scratch + count};
  launch_rows<RowMapping<kWarpSize, 0>>(Op::embed_bwd, context, count, sort_tokens, sorted,
                                        args.tokens.as<const std::int32_t>(), count);
  cuda::by_types(args.dy.dtype(), args.dtable.dtype(), [&]<class T, class To>(T, To) {
    const std::int64_t parts = (h + kVec<To> - 1) / kVec<To>;
    const Table<To> table{args.dtable.as<To>(), args.begin, args.valid, h};
    const bool aligned = h % kVec<To> == 0 && aligned_views({&args.dy, &args.dtable});
    launch_items(Op::embed_bwd, context, count * parts, add_token_rows<T, To>, table, args.dy.as<const T>(), sorted,
                 count, parts, aligned);
  });
}

} // namespace triax::kernels_fused
