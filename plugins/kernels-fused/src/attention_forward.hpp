// SPDX-License-Identifier: Apache-2.0
// Attention forward: a block has a tile of queries of one head, and iterates over the keys they see, tile by tile. For
// each query it keeps the largest score and the sum of exponentials so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao, "FlashAttention-2", 2023, algorithm 1).
//
// Threads: all threads of a block together; attention_steps.hpp describes the machine.
#pragma once

#include "attention_steps.hpp"

namespace triax::kernels_fused {

/// Of the warp's rows; four lanes hold a row.
template <class Size>
struct RunningSoftmax {
  float largest[Size::kStrips][2]; // largest score so far, without scale
  float sum[Size::kStrips][2];     // of exponentials; until the end, only over the lane's columns
};

/// Replaces scores by exp(score - largest so far), and rescales earlier sums when the largest score changes.
template <class Size, class Machine>
TRIAX_STEP void step_softmax(Machine& machine, Held<Size::kStrips, Size::kColumns>& scores,
                             Held<Size::kStrips, Size::kWidth>& out, RunningSoftmax<Size>& rows, float scale) {
  constexpr int kTiles = Size::kColumns / 8;
  constexpr float kLowest = -__builtin_inff();
  float shrink[Size::kStrips][2], base[Size::kStrips][2];
  bool changed = false;
  TRIAX_UNROLL
  for (int row = 0; row < 2 * Size::kStrips; ++row) {
    float& largest = rows.largest[row / 2][row % 2];
    float now = largest;
    TRIAX_UNROLL
    for (int i = 0; i < 2 * kTiles; ++i) now = fmaxf(now, scores[row / 2][i / 2][row % 2 * 2 + i % 2]);
    now = fmaxf(now, machine.from_neighbour(now, 1));
    now = fmaxf(now, machine.from_neighbour(now, 2));
    base[row / 2][row % 2] = now == kLowest ? 0.0f : now * scale; // no key so far
    shrink[row / 2][row % 2] =
        now == largest ? 1.0f
                       : machine.template exponential<typename Size::T>(largest * scale - base[row / 2][row % 2]);
    changed = changed || now != largest;
    largest = now;
  }
  if (machine.any(changed)) { // else all factors are 1
    TRIAX_UNROLL
    for (int row = 0; row < 2 * Size::kStrips; ++row) {
      rows.sum[row / 2][row % 2] *= shrink[row / 2][row % 2];
      TRIAX_UNROLL
      for (int i = 0; i < Size::kWidth / 4; ++i) out[row / 2][i / 2][row % 2 * 2 + i % 2] *= shrink[row / 2][row % 2];
    }
  }
  TRIAX_UNROLL
  for (int row = 0; row < 2 * Size::kStrips; ++row) {
    TRIAX_UNROLL
    for (int i = 0; i < 2 * kTiles; ++i) {
      float& score = scores[row / 2][i / 2][row % 2 * 2 + i % 2];
      score = machine.template exponential<typename Size::T>(score * scale - base[row / 2][row % 2]);
      rows.sum[row / 2][row % 2] += score;
    }
  }
}

/// Sets hidden scores to `value`; held scores of queries (rows, starting at `row`) and keys.
template <class Size, class Machine>
TRIAX_STEP void hide(Machine& machine, Held<Size::kStrips, Size::kColumns>& scores, const TileMask& mask, int row,
                     float value) {
  TRIAX_UNROLL
  for (int i = 0; i < Size::kStrips * Size::kColumns / 2; ++i) {
    const int strip = i / (Size::kColumns / 2), n = i / 4 % (Size::kColumns / 8), e = i % 4;
    const int query = row + 16 * strip + machine.lane() / 4 + 8 * (e / 2);
    if (!mask.sees(query, 8 * n + machine.lane() % 4 * 2 + e % 2)) scores[strip][n][e] = value;
  }
}
template <class Size, class Machine>
TRIAX_STEP void drop(Machine& machine, Held<Size::kStrips, Size::kColumns>& scores, const std::uint16_t* bits,
                     int row) {
  TRIAX_UNROLL
  for (int i = 0; i < Size::kStrips * Size::kColumns / 4; ++i) { // two columns of one row
    const int strip = i / (Size::kColumns / 4), n = i / 2 % (Size::kColumns / 8), half = i % 2;
    const int query = row + 16 * strip + machine.lane() / 4 + 8 * half;
    const int kept = bits[query * (Size::kColumns / kKeptTogether) + n / 2] >> (n % 2 * 8 + machine.lane() % 4 * 2);
    if (!(kept & 1)) scores[strip][n][2 * half] = 0;
    if (!(kept & 2)) scores[strip][n][2 * half + 1] = 0;
  }
}

template <class Size, class Machine>
TRIAX_STEP void finish_forward(Machine& machine, const Attention& attention, const TilePlace& at,
                               Held<Size::kStrips, Size::kWidth>& out, RunningSoftmax<Size>& rows, float scale,
                               std::int64_t first) {
  using T = typename Size::T;
  const AttentionSizes& size = attention.size;
  float factor[Size::kStrips][2];
  float* lse = attention.lse + (at.sample * size.heads + at.head) * size.queries;
  TRIAX_UNROLL
  for (int row = 0; row < 2 * Size::kStrips; ++row) {
    float sum = rows.sum[row / 2][row % 2];
    sum += machine.from_neighbour(sum, 1);
    sum += machine.from_neighbour(sum, 2);
    factor[row / 2][row % 2] = sum == 0 ? 0.0f : attention.drop.scale / sum; // 0: the query saw no key
    const std::int64_t query = first + 8 * row + machine.lane() / 4;
    if (machine.lane() % 4 == 0 && query < size.queries) {
      lse[query] = sum == 0 ? -__builtin_inff()
                            : rows.largest[row / 2][row % 2] * scale * kToNaturalExponent<T> + machine.logarithm(sum);
    }
  }
  store<Size>(machine, out, factor, head_of<T>(attention.o, at.sample, at.head), attention.o, first, size.queries, 0,
              size.width);
}

template <class Size, class Machine>
TRIAX_STEP void attention_forward(Machine& machine, const Attention& attention) {
  using T = typename Size::T;
  const AttentionSizes& size = attention.size;
  const TilePlace at = tile_place(machine.block(), tiles_of(size.queries, Size::kRows), size.heads, true);
  const std::int64_t first = at.tile * Size::kRows, key_head = at.head / size.group();
  const std::int64_t last = first + Size::kRows < size.queries ? first + Size::kRows : size.queries;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const std::int64_t seen = seen_by(attention.mask, last - 1, visible);
  const auto tiles = static_cast<int>(tiles_of(seen, Size::kColumns));
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  // With a negative scale, flips the signs of q, so that the largest product is the largest score. Replaces a scale of
  // 0 by the smallest normal number, because hidden scores are -infinity, and -infinity times 0 is NaN.
  const float sign = attention.scale < 0 ? -1.0f : 1.0f;
  const float scale = fmaxf(attention.scale * sign * kOfNaturalExponent<T>, 0x1p-126f);

  const auto tile = [&](std::size_t place) { return reinterpret_cast<T*>(machine.shared() + place); };
  const auto bits = [&](int stage) {
    return reinterpret_cast<std::uint16_t*>(machine.shared() + Size::bits(1, stage));
  };
  const auto fetch_keys = [&](int index) {
    const int stage = index & 1;
    const std::int64_t begin = std::int64_t{index} * Size::kColumns;
    fetch<Size, Size::kColumns>(machine, tile(Size::other(1, stage, 0)), head_of<T>(attention.k, at.sample, key_head),
                                attention.k, begin, seen, size.width);
    fetch<Size, Size::kColumns>(machine, tile(Size::other(1, stage, 1)), head_of<T>(attention.v, at.sample, key_head),
                                attention.v, begin, seen, size.width);
    if (drops)
      make_bits<Size, Size::kRows, Size::kColumns>(machine, bits(stage), attention, sample, at.head, first, begin);
  };

  const int row = machine.warp() * Size::kWarpRows; // first row of the warp
  Held<Size::kStrips, Size::kWidth> out;
  clear<Size::kStrips, Size::kWidth>(out);
  RunningSoftmax<Size> rows;
  TRIAX_UNROLL
  for (int i = 0; i < 2 * Size::kStrips; ++i) {
    rows.largest[i / 2][i % 2] = -__builtin_inff();
    rows.sum[i / 2][i % 2] = 0;
  }
  fetch<Size, Size::kRows>(machine, tile(0), head_of<T>(attention.q, at.sample, at.head), attention.q, first, last,
                           size.width);
  if (tiles > 0) fetch_keys(0);
  for (int index = 0; index < tiles; ++index) {
    machine.wait_copies();
    machine.sync(); // this tile has arrived, and all threads have finished the previous one
    if (index + 1 < tiles) fetch_keys(index + 1);
    const int stage = index & 1;
    Held<Size::kStrips, Size::kColumns> scores;
    clear<Size::kStrips, Size::kColumns>(scores);
    add_product_of_rows<Size>(machine, scores, tile(0) + Size::at(row, 0), tile(Size::other(1, stage, 0)), sign);
    const TileMask mask = tile_mask(attention.mask, first, std::int64_t{index} * Size::kColumns, visible);
    if (!mask.hides_none(Size::kColumns)) hide<Size>(machine, scores, mask, row, -__builtin_inff());
    step_softmax<Size>(machine, scores, out, rows, scale);
    if (drops) drop<Size>(machine, scores, bits(stage), row);
    add_product_with_held<Size>(machine, out, scores, tile(Size::other(1, stage, 1)));
  }
  finish_forward<Size>(machine, attention, at, out, rows, scale, first + row);
}

} // namespace triax::kernels_fused
