// SPDX-License-Identifier: Apache-2.0
// The embedding, one thread per vector of a token's row, and its gradient.
//
// For the gradient, the occurrences of tokens are sorted by token, equal tokens by row. Then one thread per part of a
// token's row adds the token's occurrences in that order. Blocks sort tiles of occurrences in shared memory; then each
// launch merges groups of sorted runs. There are no atomics.
#include <bit>
#include <type_traits>
#include <utility>

#include "flat.cuh"
#include "fused_kernels.hpp"
#include "scratch.hpp"

namespace triax::kernels_fused {

namespace {

/// Rows of the table, of h elements: row i is that of token begin + i, for i < valid. Other tokens belong to other
/// ranks, or are padding.
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

/// An occurrence of a token: the token, then its row in dy, of which there are at most kMaxEmbeddingRows. No two are
/// equal, so any sort gives the same order.
using Key = std::uint64_t;

constexpr Key kSign = Key{1} << 63; // negative tokens are before others
__device__ __forceinline__ Key key_of(std::int32_t token, std::int64_t row) {
  return (static_cast<Key>(static_cast<std::uint32_t>(token)) << 32 | static_cast<Key>(row)) ^ kSign;
}
__device__ __forceinline__ std::int32_t token_of(Key key) {
  return static_cast<std::int32_t>((key ^ kSign) >> 32);
}
__device__ __forceinline__ std::int64_t row_of(Key key) {
  return static_cast<std::int64_t>(key & 0xFFFFFFFF);
}

constexpr int kTile = 2048, kRuns = 8; // keys that a block sorts; runs that a launch merges

/// Where a key of a tile is in shared memory. In order, a step with a distance below 16 would access keys
/// 2 * distance * j + [0, distance): half of the 16 banks of 8 bytes. The reverse order of each second group of 16 keys
/// moves its keys to the other half, so the keys of 16 lanes are in different banks in every step.
__device__ __forceinline__ int slot_of(int i) {
  return (i & 16) != 0 ? i ^ 15 : i;
}

/// One block per tile: a bitonic sort (Batcher 1968) of `length` keys, a power of two.
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    sort_tiles(Key* sorted, const std::int32_t* tokens, std::int64_t count, int length) {
  __shared__ Key keys[kTile];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(kBlockSize);
  for (std::int64_t begin = std::int64_t{blockIdx.x} * length; begin < count;
       begin += std::int64_t{gridDim.x} * length) {
    for (int i = thread; i < length; i += threads)
      keys[slot_of(i)] = begin + i < count ? key_of(tokens[begin + i], begin + i) : ~Key{0};
    __syncthreads();
    for (int span = 2; span <= length; span *= 2) {
      for (int distance = span / 2; distance > 0; distance /= 2) {
        for (int pair = thread; pair < length / 2; pair += threads) {
          const int first = 2 * pair - (pair & (distance - 1));
          Key &low = keys[slot_of(first)], &high = keys[slot_of(first + distance)];
          const Key a = low, b = high;
          const bool in_order = (a < b) == ((first & span) == 0);
          low = in_order ? a : b;
          high = in_order ? b : a;
        }
        __syncthreads();
      }
    }
    for (int i = thread; i < length && begin + i < count; i += threads) sorted[begin + i] = keys[slot_of(i)];
    __syncthreads(); // before the keys of the next tile
  }
}

/// The number of keys of [begin, end) that are before `key`.
__device__ __forceinline__ std::int64_t keys_before(const Key* keys, std::int64_t begin, std::int64_t end, Key key) {
  std::int64_t low = begin, high = end;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (keys[middle] < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - begin;
}

/// One thread per key. Merges each kRuns runs of `length` sorted keys.
__global__ void __launch_bounds__(kBlockSize)
    merge_runs(Key* to, const Key* from, std::int64_t count, std::int64_t length) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < count; item += stride.step) {
    const Key key = from[item];
    const std::int64_t own = item / length * length, group = item / (kRuns * length) * (kRuns * length);
    std::int64_t position = group + item - own;
    for (std::int64_t begin = group; begin < group + kRuns * length && begin < count; begin += length) {
      const std::int64_t end = begin + length < count ? begin + length : count;
      if (begin != own) position += keys_before(from, begin, end, key);
    }
    to[position] = key;
  }
}

/// The end of the range of equal tokens that `position` starts.
__device__ __forceinline__ std::int64_t end_of_token(const Key* sorted, std::int64_t position, std::int64_t count) {
  const std::int32_t token = token_of(sorted[position]);
  std::int64_t low = position, high = count; // low has the token, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (token_of(sorted[middle]) == token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

/// The first `valid` of kVec<To> elements, 0 for the others. `whole`: all of them, at a multiple of their size. To is
/// the type of a table, T that of its gradient: the same, or 16 bits with a table of f32. Then these elements are half
/// of a vector of T, and a warp loads whole sectors.
template <class To, class T>
__device__ __forceinline__ Floats<To> load_elements(const T* from, int valid, bool whole) {
  Floats<To> out;
  if (!whole) {
#pragma unroll
    for (int i = 0; i < kVec<To>; ++i) out[i] = i < valid ? to_float(from[i]) : 0.0f;
  } else if constexpr (std::is_same_v<T, To>) {
    out = load(from, kVec<T>, true);
  } else {
    static_assert(2 * kVec<To> == kVec<T>);
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    const Floats<T> floats = to_floats(Vec16<T>{{words.x, words.y}});
#pragma unroll
    for (int i = 0; i < kVec<To>; ++i) out[i] = floats[i];
  }
  return out;
}

/// One thread per vector of the table's row and sorted position; only the first position of each token adds.
template <class T, class To>
__global__ void __launch_bounds__(kBlockSize) add_token_rows(Table<To> table, const T* dy, const Key* sorted,
                                                             std::int64_t count, std::int64_t vecs, bool aligned) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < count * vecs; item += stride.step) {
    const std::int64_t position = item / vecs, column = item % vecs * kVec<To>;
    const std::int32_t token = token_of(sorted[position]);
    if (position > 0 && token_of(sorted[position - 1]) == token) continue;
    const std::int64_t row = token - table.begin;
    if (row < 0 || row >= table.valid) continue;
    const int valid = valid_elements<To>(table.h, column);
    To* to = table.rows + row * table.h + column;
    Floats<To> sum = load_elements<To>(to, valid, aligned);
    const std::int64_t end = end_of_token(sorted, position, count);
#pragma unroll 4
    for (std::int64_t occurrence = position; occurrence < end; ++occurrence) {
      const T* from = dy + row_of(sorted[occurrence]) * table.h + column;
      const Floats<To> more = load_elements<To>(from, valid, aligned);
#pragma unroll
      for (int i = 0; i < kVec<To>; ++i) sum[i] += more[i];
    }
    store(to, sum, valid, aligned);
  }
}

/// The sorted keys, in scratch memory: merges write to its first and second half in turn.
const Key* sort_keys(const TensorView& tokens, std::int64_t count, const OpContext& context) {
  const int length = count < kTile ? static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(count))) : kTile;
  auto *sorted = reinterpret_cast<Key*>(context.scratch.data()), *other = sorted + count;
  const cuda::Launch launch(Op::embed_bwd, cuda::grid_of_blocks(ceil_div(count, length)), context);
  launch(sort_tiles, sorted, tokens.as<const std::int32_t>(), count, length);
  for (std::int64_t run = length; run < count; run *= kRuns) {
    launch_items(Op::embed_bwd, context, count, merge_runs, other, sorted, count, run);
    std::swap(sorted, other);
  }
  return sorted;
}

} // namespace

std::size_t scratch_of(const EmbedBwd& args) {
  const auto count = static_cast<std::size_t>(cuda::rows_of(args.dy));
  return count * sizeof(Key) * (count > kTile ? 2 : 1);
}

void FusedKernels::do_embed_fwd(const EmbedFwd& args, const OpContext& context) {
  const std::int64_t h = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    const std::int64_t vecs = ceil_div(h, kVec<T>), items = cuda::rows_of(args.y) * vecs;
    const Table<const T> table{args.table.as<const T>(), args.begin, args.valid, h};
    launch_items(Op::embed_fwd, context, items, copy_token_rows<T>, args.y.as<T>(), table,
                 args.tokens.as<const std::int32_t>(), items, vecs, aligned_rows<T>(h, {&args.y, &args.table}));
  });
}

void FusedKernels::do_embed_bwd(const EmbedBwd& args, const OpContext& context) {
  const std::int64_t count = cuda::rows_of(args.dy), h = args.dy.size(-1);
  if (count == 0) return;
  const Key* sorted = sort_keys(args.tokens, count, context);
  cuda::by_types(args.dy.dtype(), args.dtable.dtype(), [&]<class T, class To>(T, To) {
    const std::int64_t vecs = ceil_div(h, kVec<To>);
    const Table<To> table{args.dtable.as<To>(), args.begin, args.valid, h};
    // Rows of dy are then whole vectors, or whole halves of vectors (8 bytes).
    const bool aligned = h % kVec<To> == 0 && aligned_views({&args.dy, &args.dtable});
    launch_items(Op::embed_bwd, context, count * vecs, add_token_rows<T, To>, table, args.dy.as<const T>(), sorted,
                 count, vecs, aligned);
  });
}

} // namespace triax::kernels_fused
