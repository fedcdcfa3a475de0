// SPDX-License-Identifier: Apache-2.0
// Attention backward, in three kernels: delta = rowsum(dout * o); the gradient of queries, with a block per tile of
// queries; the gradients of keys and values, with a block per tile of keys. The last two recompute the probabilities
// from q, k and lse (Dao, "FlashAttention-2", 2023, algorithm 2).
//
// Threads: all threads of a block together; attention_steps.hpp describes the machine.
//
// A single kernel for all gradients would need five products instead of seven. But concurrent blocks would add to the
// same dq: in no fixed order, or in separate buffers that grow with s x s.
#pragma once

#include "attention_forward.hpp"
#include "packs.hpp"

namespace triax::kernels_fused {

/// Lanes that share a query of a head: one per 16 bytes of its row, at most a warp.
template <class T>
TRIAX_HD constexpr int lanes_of_delta(int width) {
  int lanes = 1;
  while (lanes < 32 && lanes * kPack<T> < width) lanes *= 2;
  return lanes;
}
template <class T>
TRIAX_HD constexpr int rows_of_delta(int width) { // rows per warp at a time
  return 32 / lanes_of_delta<T>(width);
}

/// Several lanes per query of each head. They take the same elements whether or not these are read in 16-byte pieces.
template <class T, class Machine>
TRIAX_STEP void attention_delta(Machine& machine, const Attention& attention, const AttentionGradients& gradients) {
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const int lanes = lanes_of_delta<T>(size.width), rows_of_warp = rows_of_delta<T>(size.width);
  const int row_of_lane = machine.lane() / lanes, lane_of_row = machine.lane() % lanes;
  const bool packed = attention.o.chunks && gradients.dout.chunks;
  for (std::int64_t first = (machine.block() * machine.warps() + machine.warp()) * rows_of_warp; first < rows;
       first += machine.blocks() * machine.warps() * rows_of_warp) {
    const std::int64_t i = first + row_of_lane;
    // Heads are contiguous in memory, so adjacent lanes take adjacent heads.
    const std::int64_t place = i / size.heads, head = i - place * size.heads;
    const std::int64_t query = place / size.samples, sample = place - query * size.samples;
    float sum = 0;
    if (i < rows) {
      const T* o = head_of<T>(attention.o, sample, head) + query * attention.o.row;
      const T* dout = head_of<T>(gradients.dout, sample, head) + query * gradients.dout.row;
      for (int column = lane_of_row * kPack<T>; column < size.width; column += lanes * kPack<T>) {
        const int live = live_of<T>(size.width, column);
        const Pack<T> of_o = read(o + column, live, packed), of_dout = read(dout + column, live, packed);
        const Values<T> x = widened(of_o), y = widened(of_dout);
        TRIAX_UNROLL
        for (int k = 0; k < kPack<T>; ++k) sum += x.at[k] * y.at[k];
      }
    }
    TRIAX_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) sum += machine.from_neighbour(sum, distance);
    }
    if (i < rows && lane_of_row == 0) gradients.delta[(sample * size.heads + head) * size.queries + query] = sum;
  }
}

/// dq = scale * dS k, where dS = P * (dropout(dout v^T) - delta).
template <class Size, class Machine>
TRIAX_STEP void attention_queries(Machine& machine, const Attention& attention, const AttentionGradients& gradients) {
  using T = typename Size::T;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(machine.block() % Size::kParts) * Size::kPartWidth;
  const TilePlace at =
      tile_place(machine.block() / Size::kParts, tiles_of(size.queries, Size::kRows), size.heads, true);
  const std::int64_t first = at.tile * Size::kRows, key_head = at.head / size.group();
  const std::int64_t last = first + Size::kRows < size.queries ? first + Size::kRows : size.queries;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const std::int64_t seen = seen_by(attention.mask, last - 1, visible);
  const auto tiles = static_cast<int>(tiles_of(seen, Size::kColumns));
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kOfNaturalExponent<T>;

  const auto tile = [&](std::size_t place) { return reinterpret_cast<T*>(machine.shared() + place); };
  const auto bits = [&](int stage) {
    return reinterpret_cast<std::uint16_t*>(machine.shared() + Size::bits(2, stage));
  };
  const auto fetch_keys = [&](int index) {
    const int stage = index & 1;
    const std::int64_t begin = std::int64_t{index} * Size::kColumns;
    fetch<Size, Size::kColumns>(machine, tile(Size::other(2, stage, 0)), head_of<T>(attention.k, at.sample, key_head),
                                attention.k, begin, seen, size.width);
    fetch<Size, Size::kColumns>(machine, tile(Size::other(2, stage, 1)), head_of<T>(attention.v, at.sample, key_head),
                                attention.v, begin, seen, size.width);
    if (drops)
      make_bits<Size, Size::kRows, Size::kColumns>(machine, bits(stage), attention, sample, at.head, first, begin);
  };

  const int row = machine.warp() * Size::kWarpRows; // first row of the warp
  float lse[Size::kStrips][2], delta[Size::kStrips][2];
  TRIAX_UNROLL
  for (int i = 0; i < 2 * Size::kStrips; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = first + row + 8 * i + machine.lane() / 4;
    const std::int64_t place = (at.sample * size.heads + at.head) * size.queries + query;
    lse[i / 2][i % 2] = query < last ? attention.lse[place] * kOfNaturalExponent<T> : 0.0f;
    delta[i / 2][i % 2] = query < last ? gradients.delta[place] : 0.0f;
  }
  Held<Size::kStrips, Size::kPartWidth> dq;
  clear<Size::kStrips, Size::kPartWidth>(dq);
  fetch<Size, Size::kRows>(machine, tile(0), head_of<T>(attention.q, at.sample, at.head), attention.q, first, last,
                           size.width);
  fetch<Size, Size::kRows>(machine, tile(Size::kOwnBytes), head_of<T>(gradients.dout, at.sample, at.head),
                           gradients.dout, first, last, size.width);
  if (tiles > 0) fetch_keys(0);
  for (int index = 0; index < tiles; ++index) {
    machine.wait_copies();
    machine.sync();
    if (index + 1 < tiles) fetch_keys(index + 1);
    const int stage = index & 1;
    Held<Size::kStrips, Size::kColumns> scores, slopes;
    clear<Size::kStrips, Size::kColumns>(scores);
    clear<Size::kStrips, Size::kColumns>(slopes);
    add_product_of_rows<Size>(machine, scores, tile(0) + Size::at(row, 0), tile(Size::other(2, stage, 0)));
    add_product_of_rows<Size>(machine, slopes, tile(Size::kOwnBytes) + Size::at(row, 0),
                              tile(Size::other(2, stage, 1)));
    if (drops) drop<Size>(machine, slopes, bits(stage), row);
    TRIAX_UNROLL
    for (int i = 0; i < Size::kStrips * Size::kColumns / 2; ++i) {
      const int strip = i / (Size::kColumns / 2), n = i / 4 % (Size::kColumns / 8), e = i % 4;
      const float p = machine.template exponential<T>(scores[strip][n][e] * scale - lse[strip][e / 2]);
      scores[strip][n][e] = p * (slopes[strip][n][e] * attention.drop.scale - delta[strip][e / 2]);
    }
    const TileMask mask = tile_mask(attention.mask, first, std::int64_t{index} * Size::kColumns, visible);
    if (!mask.hides_none(Size::kColumns)) hide<Size>(machine, scores, mask, row, 0);
    add_product_with_held<Size>(machine, dq, scores, tile(Size::other(2, stage, 0)) + part);
  }
  float factor[Size::kStrips][2];
  TRIAX_UNROLL
  for (int i = 0; i < 2 * Size::kStrips; ++i) factor[i / 2][i % 2] = attention.scale;
  store<Size>(machine, dq, factor, head_of<T>(gradients.dq, at.sample, at.head), gradients.dq, first + row,
              size.queries, part, size.width);
}

} // namespace triax::kernels_fused
