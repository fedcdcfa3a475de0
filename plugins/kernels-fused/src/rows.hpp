// SPDX-License-Identifier: Apache-2.0
// Distributes a row of n elements over a team, depending only on its bytes: pack p belongs to lane p % lanes. If the
// row is short enough, its lanes keep it in registers between passes, in the type of memory.
//
// A lane loads all of its packs, or several if registers are short, before it computes with any of them. So a row costs
// the memory's latency once or twice, not once per pack.
//
// Threads: pure functions.
#pragma once

#include "packs.hpp"

namespace triax::kernels_fused {

/// kPacks: packs of its row that a lane keeps; 0: none, every pass reads memory. kPacked: every row consists of whole
/// packs at multiples of 16 bytes. Other rows are never kept; their sums are the same.
template <unsigned kTeamLanes, int kTeamPacks, bool kRowsPacked = true>
struct RowPlan {
  static constexpr unsigned kLanes = kTeamLanes;
  static constexpr int kPacks = kTeamPacks;
  static constexpr bool kPacked = kRowsPacked;
  static constexpr std::int64_t kBytes = std::int64_t{16} * kLanes * kPacks; // of the longest row
};
using ShortWarpRow = RowPlan<kWarp, 4>;   // rows of up to 2 KiB
using WarpRow = RowPlan<kWarp, 8>;        // 4 KiB
using ShortBlockRow = RowPlan<kBlock, 2>; // 8 KiB
using BlockRow = RowPlan<kBlock, 4>;      // 16 KiB
using WideBlockRow = RowPlan<kBlock, 8>;  // 32 KiB
using LongRow = RowPlan<kBlock, 0>;
using LooseWarpRow = RowPlan<kWarp, 0, false>;
using LooseRow = RowPlan<kBlock, 0, false>;

/// body(plan) with the plan for rows of n elements of T. The number of lanes does not depend on `packed`.
template <class T, class Body>
void by_row_plan(std::int64_t n, bool packed, Body body) {
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
  if (!packed) return bytes <= WarpRow::kBytes ? body(LooseWarpRow{}) : body(LooseRow{});
  if (bytes <= ShortWarpRow::kBytes) return body(ShortWarpRow{});
  if (bytes <= WarpRow::kBytes) return body(WarpRow{});
  if (bytes <= ShortBlockRow::kBytes) return body(ShortBlockRow{});
  if (bytes <= BlockRow::kBytes) return body(BlockRow{});
  if (bytes <= WideBlockRow::kBytes) return body(WideBlockRow{});
  body(LongRow{});
}

/// Number of valid elements of a pack: all of them in rows of whole packs.
template <class T, class Plan>
TRIAX_LANE int live_in_row(std::int64_t n, std::int64_t at) {
  return Plan::kPacked ? kPack<T> : live_of<T>(n, at);
}

/// Distance from one pack of a lane to its next.
template <class T, class Plan>
inline constexpr int kStrideOf = static_cast<int>(Plan::kLanes) * kPack<T>;

/// The rest of a row: in 32 bits if the row is kept.
template <class Plan>
TRIAX_LANE auto length_of(std::int64_t left) {
  if constexpr (Plan::kPacks > 0) {
    return static_cast<int>(left);
  } else {
    return left;
  }
}

/// The packs at one position of several rows.
template <class T, int kRows>
struct Packs {
  Pack<T> of[kRows];
};

/// Makes nvcc convert 16-bit values at each use. Otherwise it converts them early and keeps floats in twice the
/// registers.
template <class T>
TRIAX_LANE Pack<T> as_read(Pack<T> pack) {
#if defined(__CUDACC__)
  if constexpr (cuda::kHalf<T>)
    asm volatile("" : "+r"(pack.words[0]), "+r"(pack.words[1]), "+r"(pack.words[2]), "+r"(pack.words[3]));
#endif
  return pack;
}
template <class T, int kRows>
TRIAX_LANE Packs<T, kRows> as_read(Packs<T, kRows> packs) {
  TRIAX_UNROLL
  for (Pack<T>& pack : packs.of) pack = as_read(pack);
  return packs;
}

/// use(number, at, fetched) for each pack of the lane, in order: its number among the kept packs, its first element,
/// and the result of fetch(at). kMax: packs that are loaded before the first is used.
template <class T, class Plan, int kMax = 8, class Fetch, class Use>
TRIAX_LANE void walk(unsigned lane, std::int64_t n, Fetch fetch, Use use) {
  constexpr int kStride = kStrideOf<T, Plan>;
  constexpr int kOfPlan = Plan::kPacks > 0 ? Plan::kPacks : Plan::kPacked ? 4 : 1;
  constexpr int kTogether = kOfPlan < kMax ? kOfPlan : kMax;
  static_assert(Plan::kPacks % kTogether == 0);
  const std::int64_t first = static_cast<std::int64_t>(lane) * kPack<T>;
  const auto group = [&](int number, std::int64_t begin) {
    const auto left = length_of<Plan>(n - begin);
    decltype(fetch(begin)) fetched[kTogether]{};
    TRIAX_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (i * kStride < left) fetched[i] = fetch(begin + i * kStride);
    }
    TRIAX_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (i * kStride < left) use(Plan::kPacks > 0 ? number + i : 0, begin + i * kStride, as_read(fetched[i]));
    }
  };
  if constexpr (Plan::kPacks > 0) {
    TRIAX_UNROLL
    for (int number = 0; number < Plan::kPacks; number += kTogether) group(number, first + number * kStride);
  } else {
    for (std::int64_t begin = first; begin < n; begin += kTogether * kStride) group(0, begin);
  }
}

/// What a lane keeps of kRows rows.
template <class T, class Plan, int kRows = 1>
class Kept {
 public:
  TRIAX_LANE void put(int number, const Packs<T, kRows>& packs) {
    if constexpr (Plan::kPacks > 0) packs_[number] = packs;
  }
  /// use(at, packs) for each pack of the lane, with the packs given to put(); if nothing is kept, with again(at).
  template <class Again, class Use>
  TRIAX_LANE void walk_again(unsigned lane, std::int64_t n, Again again, Use use) const {
    if constexpr (Plan::kPacks > 0) {
      const std::int64_t first = static_cast<std::int64_t>(lane) * kPack<T>;
      const auto left = length_of<Plan>(n - first);
      TRIAX_UNROLL
      for (int number = 0; number < Plan::kPacks; ++number) {
        if (number * kStrideOf<T, Plan> < left) use(first + number * kStrideOf<T, Plan>, as_read(packs_[number]));
      }
    } else {
      walk<T, Plan>(lane, n, again, [&](int, std::int64_t at, const Packs<T, kRows>& packs) { use(at, packs); });
    }
  }

 private:
  Packs<T, kRows> packs_[Plan::kPacks > 0 ? Plan::kPacks : 1];
};

} // namespace triax::kernels_fused
