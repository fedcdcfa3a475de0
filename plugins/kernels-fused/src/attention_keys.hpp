// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradients of keys and values: a block has a tile of keys of one key head, and iterates over the
// queries that see them, tile by tile, for all query heads of the key head in order.
//
// Threads: all threads of a block together; attention_steps.hpp describes the machine.
//
// Rows are keys here, and columns are queries: products are transposed, so that P and dS stay in registers.
#pragma once

#include "attention_steps.hpp"

namespace triax::kernels_fused {

/// The queries that a tile of keys iterates over.
struct QueryPass {
  int first_tile, tiles, steps; // tiles of one head; steps over all heads
};
template <class Size>
TRIAX_STEP QueryPass query_pass(const Attention& attention, std::int64_t first_key, std::int64_t visible) {
  const AttentionSizes& size = attention.size;
  const std::int64_t from = first_seeing(attention.mask, first_key) / Size::kColumns;
  std::int64_t tiles = tiles_of(size.queries, Size::kColumns) - from;
  if (tiles < 0 || first_key >= visible) tiles = 0;
  return {static_cast<int>(from), static_cast<int>(tiles), static_cast<int>(tiles * size.group())};
}

/// Sets hidden scores to 0; scores of keys (rows, starting at `row`) and queries.
template <class Size, class Machine>
TRIAX_STEP void hide_keys(Machine& machine, Held<Size::kStrips, Size::kColumns>& scores, const TileMask& mask,
                          int row) {
  TRIAX_UNROLL
  for (int i = 0; i < Size::kStrips * Size::kColumns / 2; ++i) {
    const int strip = i / (Size::kColumns / 2), n = i / 4 % (Size::kColumns / 8), e = i % 4;
    const int key = row + 16 * strip + machine.lane() / 4 + 8 * (e / 2);
    if (!mask.sees(8 * n + machine.lane() % 4 * 2 + e % 2, key)) scores[strip][n][e] = 0;
  }
}

/// Replaces P (in scores) by dropout(P) without its scale, and slopes, which are dout v^T, by dS.
template <class Size, bool kDrops, class Machine>
TRIAX_STEP void step_slopes(Machine& machine, Held<Size::kStrips, Size::kColumns>& scores,
                            Held<Size::kStrips, Size::kColumns>& slopes, const float* delta, const std::uint16_t* bits,
                            int row, float keep_scale) {
  TRIAX_UNROLL
  for (int i = 0; i < Size::kStrips * Size::kColumns / 4; ++i) { // two rows of one column
    const int strip = i / (Size::kColumns / 4), n = i / 2 % (Size::kColumns / 8), odd = i % 2;
    const int query = 8 * n + machine.lane() % 4 * 2 + odd;
    const float less = delta[query];
    int kept = 0;
    if constexpr (kDrops)
      kept = bits[query * (Size::kRows / kKeptTogether) + row / kKeptTogether + strip] >> (machine.lane() / 4);
    TRIAX_UNROLL
    for (int half = 0; half < 2; ++half) {
      float &p = scores[strip][n][2 * half + odd], &slope = slopes[strip][n][2 * half + odd];
      if constexpr (kDrops) {
        const bool keeps = (kept >> (8 * half) & 1) != 0;
        slope = p * ((keeps ? slope * keep_scale : 0.0f) - less);
        if (!keeps) p = 0;
      } else {
        slope = p * (slope - less);
      }
    }
  }
}

/// dv = dropout(P)^T dout; dk = scale * dS^T q.
template <class Size, class Machine>
TRIAX_STEP void attention_keys(Machine& machine, const Attention& attention, const AttentionGradients& gradients) {
  using T = typename Size::T;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(machine.block() % Size::kParts) * Size::kPartWidth;
  const TilePlace at =
      tile_place(machine.block() / Size::kParts, tiles_of(size.keys, Size::kRows), size.key_heads, false);
  const std::int64_t first = at.tile * Size::kRows;
  const std::int64_t last = first + Size::kRows < size.keys ? first + Size::kRows : size.keys;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const QueryPass pass = query_pass<Size>(attention, first, visible);
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kOfNaturalExponent<T>;

  const auto tile = [&](std::size_t place) { return reinterpret_cast<T*>(machine.shared() + place); };
  const auto bits = [&](int stage) {
    return reinterpret_cast<std::uint16_t*>(machine.shared() + Size::bits(2, stage));
  };
  const auto statistics = [&](int stage, int k) {
    return reinterpret_cast<float*>(machine.shared() + Size::statistics(2, stage, k));
  };
  std::int64_t head = at.head * size.group(), fetched = -1; // the query head, and its last fetched tile
  const auto fetch_queries = [&](int stage) {
    if (++fetched == pass.tiles) {
      fetched = 0;
      ++head;
    }
    const std::int64_t begin = (pass.first_tile + fetched) * Size::kColumns;
    const std::int64_t row_of_head = (at.sample * size.heads + head) * size.queries;
    fetch<Size, Size::kColumns>(machine, tile(Size::other(2, stage, 0)), head_of<T>(attention.q, at.sample, head),
                                attention.q, begin, size.queries, size.width);
    fetch<Size, Size::kColumns>(machine, tile(Size::other(2, stage, 1)), head_of<T>(gradients.dout, at.sample, head),
                                gradients.dout, begin, size.queries, size.width);
    fetch_statistics<Size>(machine, statistics(stage, 0), attention.lse + row_of_head, begin, size.queries);
    fetch_statistics<Size>(machine, statistics(stage, 1), gradients.delta + row_of_head, begin, size.queries);
    if (drops)
      make_bits<Size, Size::kColumns, Size::kRows>(machine, bits(stage), attention, sample, head, begin, first);
  };

  const int row = machine.warp() * Size::kWarpRows; // first row of the warp
  Held<Size::kStrips, Size::kPartWidth> dk, dv;
  clear<Size::kStrips, Size::kPartWidth>(dk);
  clear<Size::kStrips, Size::kPartWidth>(dv);
  fetch<Size, Size::kRows>(machine, tile(0), head_of<T>(attention.k, at.sample, at.head), attention.k, first, last,
                           size.width);
  fetch<Size, Size::kRows>(machine, tile(Size::kOwnBytes), head_of<T>(attention.v, at.sample, at.head), attention.v,
                           first, last, size.width);
  if (pass.steps > 0) fetch_queries(0);
  for (int step = 0; step < pass.steps; ++step) {
    machine.wait_copies();
    machine.sync();
    const int stage = step & 1;
    const std::int64_t begin = (pass.first_tile + fetched) * Size::kColumns;
    if (step + 1 < pass.steps) fetch_queries(stage ^ 1);
    const float* lse = statistics(stage, 0);
    Held<Size::kStrips, Size::kColumns> scores, slopes;
    clear<Size::kStrips, Size::kColumns>(scores);
    clear<Size::kStrips, Size::kColumns>(slopes);
    add_product_of_rows<Size>(machine, scores, tile(0) + Size::at(row, 0), tile(Size::other(2, stage, 0)));
    TRIAX_UNROLL
    for (int i = 0; i < Size::kStrips * Size::kColumns / 2; ++i) {
      const int strip = i / (Size::kColumns / 2), n = i / 4 % (Size::kColumns / 8), e = i % 4;
      const float less = lse[8 * n + machine.lane() % 4 * 2 + e % 2] * kOfNaturalExponent<T>;
      scores[strip][n][e] = machine.template exponential<T>(scores[strip][n][e] * scale - less);
    }
    const TileMask mask = tile_mask(attention.mask, begin, first, visible);
    if (!mask.hides_none(Size::kRows)) hide_keys<Size>(machine, scores, mask, row);
    add_product_of_rows<Size>(machine, slopes, tile(Size::kOwnBytes) + Size::at(row, 0),
                              tile(Size::other(2, stage, 1)));
    if (drops) {
      step_slopes<Size, true>(machine, scores, slopes, statistics(stage, 1), bits(stage), row, attention.drop.scale);
    } else {
      step_slopes<Size, false>(machine, scores, slopes, statistics(stage, 1), nullptr, row, 1);
    }
    add_product_with_held<Size>(machine, dv, scores, tile(Size::other(2, stage, 1)) + part);
    add_product_with_held<Size>(machine, dk, slopes, tile(Size::other(2, stage, 0)) + part);
  }
  float by_keeping[Size::kStrips][2], by_scale[Size::kStrips][2];
  TRIAX_UNROLL
  for (int i = 0; i < 2 * Size::kStrips; ++i) {
    by_keeping[i / 2][i % 2] = attention.drop.scale;
    by_scale[i / 2][i % 2] = attention.scale;
  }
  store<Size>(machine, dv, by_keeping, head_of<T>(gradients.dv, at.sample, at.head), gradients.dv, first + row,
              size.keys, part, size.width);
  store<Size>(machine, dk, by_scale, head_of<T>(gradients.dk, at.sample, at.head), gradients.dk, first + row, size.keys,
              part, size.width);
}

} // namespace triax::kernels_fused
