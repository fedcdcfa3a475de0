// SPDX-License-Identifier: Apache-2.0
// Steps of the attention kernels: loading tiles, products of tiles, masks and dropout of scores, storing rows.
//
// GPU threads: all threads of a block call load_*() and make_dropout_bits() together, all lanes of a warp the others. A
// warp has strips of 16 rows of the block's tile, as fragments (fragment.cuh).
#pragma once

#include "attention_config.hpp"
#include "attention_f32.cuh"
#include "fragment.cuh"
#include "mma.cuh"
#include "triax/cuda/launching.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

// uint4: ldmatrix and cp.async need multiples of 16 bytes. One type for all T, because nvcc merges the declarations of
// all kernels.
extern __shared__ uint4 attention_memory[];

/// The block's shared memory: kResident tiles of kResidentRows rows, and two stages of what is loaded for an
/// iteration, at the offsets of AttentionConfig, which has a picture of a row and its padding.
template <class Config, int kResident>
struct SharedMemory {
  using T = typename Config::T;
  __device__ __forceinline__ static T* resident(int k) { return at_byte<T>(k * Config::kResidentBytes); }
  __device__ __forceinline__ static T* streamed(int stage, int k) {
    return at_byte<T>(Config::streamed(kResident, stage, k));
  }
  // Dropout bits of queries, Config::kBitsStride apart, in the padding of the tile whose rows are queries: resident
  // tile 0 (forward and dq; both stages side by side), or streamed tile 0 of the stage (dk and dv).
  __device__ __forceinline__ static std::uint16_t* resident_bits(int stage) {
    return reinterpret_cast<std::uint16_t*>(resident(0) + Config::kHeadDim) +
           stage * (Config::kStreamedRows / kKeptTogether);
  }
  __device__ __forceinline__ static std::uint16_t* streamed_bits(int stage) {
    return reinterpret_cast<std::uint16_t*>(streamed(stage, 0) + Config::kHeadDim);
  }
  /// At the indices Config::statistic().
  __device__ __forceinline__ static float* statistics(int stage) {
    return reinterpret_cast<float*>(streamed(stage, 1) + Config::kHeadDim);
  }

 private:
  template <class U>
  __device__ __forceinline__ static U* at_byte(std::size_t offset) {
    return reinterpret_cast<U*>(reinterpret_cast<std::byte*>(attention_memory) + offset);
  }
};

/// Loads rows [first, first + kRows) of a head into a tile. Rows from `end` on, and columns from `head_dim` on, are
/// zeros.
template <class Config, int kRows>
__device__ __forceinline__ void load_tile(typename Config::T* tile, const Head<typename Config::T>& head,
                                          std::int64_t first, std::int64_t end, int head_dim) {
  using T = typename Config::T;
  constexpr int kVecsPerRow = Config::kHeadDim / kVec<T>, kSteps = kRows * kVecsPerRow / Config::kThreads;
  static_assert(kRows * kVecsPerRow % Config::kThreads == 0);
  if (head.vec16 && Config::kThreads % kVecsPerRow == 0) { // A thread copies one column of vectors, kApart rows apart.
    constexpr int kApart = Config::kThreads / kVecsPerRow;
    const int row = thread_index() / kVecsPerRow, column = thread_index() % kVecsPerRow * kVec<T>;
    const int valid = end - first < kRows ? static_cast<int>(end - first) : kRows;
    const int left = column < head_dim ? valid - row : 0;
    const T* from = head.row(first + row) + column;
    T* to = tile + Config::offset(row, column);
    // A copy of 0 bytes reads nothing, so the address may be past the end (PTX cp.async, src-size).
#pragma unroll
    for (int step = 0; step < kSteps; ++step, from += kApart * head.row_stride)
      cp_async_16(to + Config::offset(step * kApart, 0), from, step * kApart < left);
  } else if (head.vec16) {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * Config::kThreads + thread_index(), row = i / kVecsPerRow, column = i % kVecsPerRow * kVec<T>;
      const bool there = first + row < end && column < head_dim;
      cp_async_16(tile + Config::offset(row, column), there ? head.row(first + row) + column : head.rows, there);
    }
  } else {
#pragma unroll 1
    for (int i = thread_index(); i < kRows * Config::kHeadDim; i += Config::kThreads) {
      const int row = i / Config::kHeadDim, column = i % Config::kHeadDim;
      const bool there = first + row < end && column < head_dim;
      tile[Config::offset(row, column)] = there ? head.row(first + row)[column] : T{};
    }
  }
}

/// Loads the k-th statistic of kStreamedRows queries from `first` on; zeros from `end` on.
template <class Config>
__device__ __forceinline__ void load_statistics(float* to, int k, const float* from, std::int64_t first,
                                                std::int64_t end) {
#pragma unroll 1
  for (int i = thread_index(); i < Config::kStreamedRows; i += Config::kThreads) {
    const bool there = first + i < end;
    cp_async_4(to + Config::statistic(i, k), there ? from + first + i : from, there);
  }
}

/// Dropout bits of kQueries x kKeys scores: number [query][key / 16], bit key % 16; the numbers of a query are
/// Config::kBitsStride apart from those of the next.
template <class Config, int kQueries, int kKeys>
__device__ __forceinline__ void make_dropout_bits(std::uint16_t* bits, const AttentionParams& attention,
                                                  std::uint32_t sample, std::int64_t head, std::int64_t first_query,
                                                  std::int64_t first_key) {
  constexpr int kNumbers = kKeys / kKeptTogether;
#pragma unroll 1
  for (int i = thread_index(); i < kQueries * kNumbers; i += Config::kThreads) {
    const std::uint64_t first = score_element(attention.drop, attention.mask, head, first_query + i / kNumbers,
                                              first_key + i % kNumbers * kKeptTogether);
    const std::uint32_t kept = kept_bits(attention.drop, sample, first);
    bits[i / kNumbers * Config::kBitsStride + i % kNumbers] = static_cast<std::uint16_t>(kept);
  }
}

/// A block's tile of queries of one head, and the keys that they see, which the block iterates over in tiles.
template <class Config>
struct QueryTile {
  std::int64_t sample, head, key_head;
  std::int64_t query0, query_end;    // queries [query0, query_end)
  std::int64_t sample_keys, key_end; // keys of the sample; keys [0, key_end) that the last query sees
  int key_tiles;
  bool drops;
  std::uint32_t philox_sample; // number of the sample, for dropout

  __device__ __forceinline__ QueryTile(const AttentionParams& attention, std::int64_t block) {
    const AttentionSizes& size = attention.size;
    const TileCoordinates at = tile_of_block(block, ceil_div(size.queries, Config::kResidentRows), size.heads, true);
    sample = at.sample;
    head = at.head;
    key_head = head / size.group();
    query0 = at.tile * Config::kResidentRows;
    query_end = query0 + Config::kResidentRows < size.queries ? query0 + Config::kResidentRows : size.queries;
    sample_keys = visible_keys(attention.mask, sample, size.keys);
    key_end = seen_by(attention.mask, query_end - 1, sample_keys);
    key_tiles = static_cast<int>(ceil_div(key_end, Config::kStreamedRows));
    drops = attention.drop.threshold != 0;
    philox_sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[sample]) : 0u;
  }

  __device__ __forceinline__ std::int64_t first_key(int key_tile) const {
    return std::int64_t{key_tile} * Config::kStreamedRows;
  }
  __device__ __forceinline__ TileMask mask(const AttentionParams& attention, int key_tile) const {
    return tile_mask(attention.mask, query0, first_key(key_tile), sample_keys);
  }
};

/// out += a b^T: a has the warp's rows, and b's rows are the columns of out. a is multiplied by `sign`, 1 or -1.
template <class Config>
__device__ __forceinline__ void mma_abt(Fragment<Config::kMmaM, Config::kStreamedRows>& out,
                                        const typename Config::T* a, const typename Config::T* b, float sign = 1) {
  using T = typename Config::T;
  if constexpr (std::is_same_v<T, float>) {
    fma_abt<Config>(out, a, b, sign);
  } else {
    const int lane = lane_index();
    const std::uint32_t flip = sign < 0 ? 0x80008000u : 0u; // flips the signs of both halves
    const T* a_rows = a + Config::offset(lane % 16, lane / 16 * 8);
    const T* b_rows = b + Config::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
#pragma unroll
    for (int k = 0; k < Config::kHeadDim; k += 16) {
      std::uint32_t a_regs[Config::kMmaM][4];
#pragma unroll
      for (int mma_m = 0; mma_m < Config::kMmaM; ++mma_m) {
        ldmatrix(a_regs[mma_m], a_rows + Config::offset(16 * mma_m, k));
#pragma unroll
        for (int reg = 0; reg < 4; ++reg) a_regs[mma_m][reg] ^= flip;
      }
#pragma unroll
      for (int n = 0; n < Config::kStreamedRows / 16; ++n) {
        std::uint32_t b_regs[4];
        ldmatrix(b_regs, b_rows + Config::offset(16 * n, k));
#pragma unroll
        for (int mma_m = 0; mma_m < Config::kMmaM; ++mma_m) {
          mma_16x8x16<T>(out[mma_m][2 * n], a_regs[mma_m], b_regs[0], b_regs[1]);
          mma_16x8x16<T>(out[mma_m][2 * n + 1], a_regs[mma_m], b_regs[2], b_regs[3]);
        }
      }
    }
  }
}

/// out += a b: the warp holds a in registers, and b's rows are a's columns. Uses kBlockColumns columns of b.
template <class Config>
__device__ __forceinline__ void mma_ab(Fragment<Config::kMmaM, Config::kBlockColumns>& out,
                                       const Fragment<Config::kMmaM, Config::kStreamedRows>& a,
                                       const typename Config::T* b) {
  using T = typename Config::T;
  if constexpr (std::is_same_v<T, float>) {
    fma_ab<Config>(out, a, b);
  } else {
    const int lane = lane_index();
    const T* b_rows = b + Config::offset(lane % 16, lane / 16 * 8);
#pragma unroll
    for (int k = 0; k < Config::kStreamedRows / 16; ++k) { // two tiles of 8 columns are one operand of 16
      std::uint32_t a_regs[Config::kMmaM][4];
#pragma unroll
      for (int mma_m = 0; mma_m < Config::kMmaM; ++mma_m) {
#pragma unroll
        for (int reg = 0; reg < 4; ++reg) {
          const float* pair = a[mma_m][2 * k + reg / 2] + reg % 2 * 2;
          a_regs[mma_m][reg] = pair_from_floats<T>(pair[0], pair[1]);
        }
      }
#pragma unroll
      for (int n = 0; n < Config::kBlockColumns / 16; ++n) {
        std::uint32_t b_regs[4];
        ldmatrix_transposed(b_regs, b_rows + Config::offset(16 * k, 16 * n));
#pragma unroll
        for (int mma_m = 0; mma_m < Config::kMmaM; ++mma_m) {
          mma_16x8x16<T>(out[mma_m][2 * n], a_regs[mma_m], b_regs[0], b_regs[1]);
          mma_16x8x16<T>(out[mma_m][2 * n + 1], a_regs[mma_m], b_regs[2], b_regs[3]);
        }
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void store_pair(T* to, float low, float high) {
  if constexpr (std::is_same_v<T, float>) {
    *reinterpret_cast<float2*>(to) = make_float2(low, high);
  } else {
    *reinterpret_cast<std::uint32_t*>(to) = pair_from_floats<T>(low, high);
  }
}
/// Writes the warp's rows, multiplied by their factors, to a head, or adds them to what is there: to rows from `first`
/// to `end`, and to columns from `first_column` on.
template <class Config>
__device__ __forceinline__ void store_fragment(const Fragment<Config::kMmaM, Config::kBlockColumns>& fragment,
                                               const float (&factors)[2 * Config::kMmaM],
                                               const Head<typename Config::T>& head, std::int64_t first,
                                               std::int64_t end, int first_column, int head_dim, bool adds = false) {
  using T = typename Config::T;
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) {
    const std::int64_t row = first + 8 * i + lane_index() / 4;
    if (row >= end) continue;
    T* to = head.row(row);
#pragma unroll
    for (int n = 0; n < Config::kBlockColumns / 8; ++n) {
      const int even = first_column + 8 * n + lane_index() % 4 * 2;
      const float factor = factors[i];
      float low = at(fragment, i, 2 * n) * factor, high = at(fragment, i, 2 * n + 1) * factor;
      if (adds) {
        if (even < head_dim) low += to_float(to[even]);
        if (even + 1 < head_dim) high += to_float(to[even + 1]);
      }
      if (head.vec2 && even + 1 < head_dim) {
        store_pair(to + even, low, high);
      } else {
        if (even < head_dim) to[even] = from_float<T>(low);
        if (even + 1 < head_dim) to[even + 1] = from_float<T>(high);
      }
    }
  }
}

/// Sets hidden scores to `value`. The rows of the fragment are queries from `row` on, its columns are keys; or the
/// reverse, if kRowsAreKeys.
template <class Config, bool kRowsAreKeys = false>
__device__ __forceinline__ void mask_scores(Fragment<Config::kMmaM, Config::kStreamedRows>& scores,
                                            const TileMask& mask, int row, float value) {
  for_each_element<Config::kMmaM, Config::kStreamedRows>([&](FragmentIndex i) {
    const bool seen = kRowsAreKeys ? mask.sees(i.column(), row + i.row()) : mask.sees(row + i.row(), i.column());
    if (!seen) scores[i.mma_m][i.mma_n][i.reg] = value;
  });
}
/// Sets dropped scores to 0. bits: those of make_dropout_bits().
template <class Config>
__device__ __forceinline__ void drop_scores(Fragment<Config::kMmaM, Config::kStreamedRows>& scores,
                                            const std::uint16_t* bits, int row) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM * Config::kStreamedRows / 4; ++i) { // two columns of one row
    const FragmentIndex even{i / (Config::kStreamedRows / 4), i / 2 % (Config::kStreamedRows / 8), i % 2 * 2};
    const int kept = bits[(row + even.row()) * Config::kBitsStride + even.mma_n / 2] >> (even.column() % kKeptTogether);
    if (!(kept & 1)) scores[even.mma_m][even.mma_n][even.reg] = 0;
    if (!(kept & 2)) scores[even.mma_m][even.mma_n][even.reg + 1] = 0;
  }
}

} // namespace triax::kernels_fused
