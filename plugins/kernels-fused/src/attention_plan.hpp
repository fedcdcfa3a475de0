// SPDX-License-Identifier: Apache-2.0
// Index computations of the attention kernels: tiles, visible keys, dropped elements, rows in memory.
//
// Host threads: any. Kernels call these functions, too. Ownership: pointers are to device memory (in tests, to host
// memory). "first" is the index in the view of a tile's first query or key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/cuda/drop.hpp"
#include "triax/cuda/host_device.hpp"
#include "triax/cuda/mask.hpp"
#include "triax/error.hpp"
#include "triax/kernel_ops.hpp"
#include "triax/random.hpp"

namespace triax::kernels_fused {

inline constexpr int kMaxHeadDim = 256;
inline constexpr std::int64_t kMaxGridBlocks = 0x7FFFFFFF;

/// A [s, b, a, d] view: strides in elements.
struct HeadView {
  void* data = nullptr;
  std::int64_t row_stride = 0, sample_stride = 0, head_stride = 0;
  bool vec16 = false; // every row is whole vectors of 16 bytes, at multiples of 16 bytes
  bool vec2 = false;  // every row is aligned for stores of two elements
};

/// The rows of one head of a sample.
template <class T>
struct Head {
  T* rows;
  std::int64_t row_stride;
  bool vec16, vec2;
  TRIAX_HD T* row(std::int64_t i) const { return rows + i * row_stride; }
};
template <class T>
TRIAX_HD inline Head<T> head_of(const HeadView& x, std::int64_t sample, std::int64_t head) {
  return {static_cast<T*>(x.data) + sample * x.sample_stride + head * x.head_stride, x.row_stride, x.vec16, x.vec2};
}

struct AttentionSizes {
  std::int64_t queries = 0, keys = 0, samples = 0, heads = 0, key_heads = 0;
  int head_dim = 0;
  TRIAX_HD std::int64_t group() const { return heads / key_heads; } // query heads per key head
};

/// Arguments of both forward and backward.
struct AttentionParams {
  AttentionSizes size;
  cuda::MaskPlan mask;
  cuda::DropArguments drop; // without the sizes of a view
  float scale = 1;
  HeadView q, k, v, o;
  float* lse = nullptr; // [b, a, sq]
};
struct AttentionGradients {
  HeadView dout, dq, dk, dv;
  float* delta = nullptr; // [b, a, sq]: rowsum(dout * o)
  bool add_kv = false;    // dk and dv are added to
};

// --- tiles

struct TileCoordinates {
  std::int64_t sample, head, tile;
};
/// One block per tile of each head. Tiles of one head are neighbours in the order of blocks, because they read the same
/// keys. `backwards`: starts with the last tile of a head, which has the most work under a causal mask. The last blocks
/// of the grid are then the tiles with the least work, of the last head.
TRIAX_HD constexpr TileCoordinates tile_of_block(std::int64_t block, std::int64_t tiles, std::int64_t heads,
                                                 bool backwards) {
  const std::int64_t unit = block / tiles, tile = block % tiles;
  return {unit / heads, unit % heads, backwards ? tiles - 1 - tile : tile};
}

// --- visible keys

/// The first query that sees key `key`, if any does.
TRIAX_HD inline std::int64_t first_seeing(const cuda::MaskPlan& mask, std::int64_t key) {
  const std::int64_t query = mask.k0 + key - mask.q0;
  return mask.causal && query > 0 ? query : 0;
}

/// The mask of one tile, in indices within the tile.
struct TileMask {
  int shift, keys; // query i sees key j if j <= i + shift and j < keys
  TRIAX_HD bool sees(int query, int key) const { return key <= query + shift && key < keys; }
  TRIAX_HD bool is_full(int tile_keys) const { return shift >= tile_keys - 1 && keys >= tile_keys; }
};
TRIAX_HD inline TileMask tile_mask(const cuda::MaskPlan& mask, std::int64_t first_query, std::int64_t first_key,
                                   std::int64_t visible) {
  constexpr std::int64_t kFar = 1 << 20; // longer than any tile
  std::int64_t shift = mask.causal ? mask.q0 + first_query - mask.k0 - first_key : kFar;
  std::int64_t keys = visible - first_key;
  shift = shift > kFar ? kFar : shift < -kFar ? -kFar : shift;
  keys = keys > kFar ? kFar : keys < 0 ? 0 : keys;
  return {static_cast<int>(shift), static_cast<int>(keys)};
}

// --- dropout

inline constexpr int kKeptTogether = 16; // keys whose bits one thread computes and stores as one number

/// The number of a score of a query and a key of the view, within the sample's global tensor.
TRIAX_HD inline std::uint64_t score_element(const cuda::DropArguments& drop, const cuda::MaskPlan& mask,
                                            std::int64_t head, std::int64_t query, std::int64_t key) {
  return static_cast<std::uint64_t>(((drop.head0 + head) * drop.rows + mask.q0 + query) * drop.width + mask.k0 + key);
}

/// Bit i: element first + i is kept. Computes each Philox block once, and uses all its words.
TRIAX_HD inline std::uint32_t kept_bits(const cuda::DropArguments& drop, std::uint32_t sample, std::uint64_t first) {
  const auto begin = static_cast<unsigned>(first % 4);
  const int blocks = kKeptTogether / 4 + (begin != 0 ? 1 : 0);
  std::uint32_t bits = 0;
  for (int i = 0; i < kKeptTogether / 4 + 1; ++i) {
    if (i == blocks) break;
    const PhiloxBlock words = philox_at(drop.key, first + 4 * static_cast<std::uint64_t>(i), drop.site, sample);
    std::uint32_t kept = 0;
    for (unsigned word = 0; word < 4; ++word) kept |= words[word] >= drop.threshold ? 1u << word : 0u;
    bits |= kept << (4 * i);
  }
  return (bits >> begin) & ((1u << kKeptTogether) - 1);
}

// --- host

HeadView head_view(const TensorView& x);
AttentionParams attention_of(const AttentionFwd& args);
AttentionParams attention_of(const AttentionBwd& args);
AttentionGradients gradients_of(const AttentionBwd& args, void* scratch);

/// Whether the kernels support these arguments; the same on every GPU.
/// @{
Refusals attention_supported(const AttentionFwd& args);
Refusals attention_supported(const AttentionBwd& args);
/// @}
std::size_t delta_bytes(const TensorView& q);

} // namespace triax::kernels_fused
