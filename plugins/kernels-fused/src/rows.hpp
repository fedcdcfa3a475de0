// SPDX-License-Identifier: Apache-2.0
// How a row of n elements is shared out over a team, by its bytes alone: pack number p belongs to lane p % lanes, and
// where a row is short enough its lanes keep it in registers between the passes over it, as it lies in memory.
//
// A lane asks for all of its packs, or for several where it has not the registers, before it computes on any of them:
// so a row costs the memory's latency once or twice, not once for each pack.
//
// Threads: pure functions. Ownership, blocking, errors: none.
#pragma once

#include "packs.hpp"

namespace triax::fused {

/// kPacks: of its row that a lane keeps; 0: none, every pass reads memory again. kPacked: every row is whole packs at
/// multiples of 16 bytes. Rows that are not are never kept: the sums are the same.
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

/// body(plan) with the plan for rows of n elements of T. As many lanes whether packed or not.
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

/// How many of a pack's elements are there: all, in rows of whole packs.
template <class T, class Plan>
TRIAX_LANE int live_in_row(std::int64_t n, std::int64_t at) {
  return Plan::kPacked ? kPack<T> : live_of<T>(n, at);
}

/// From a pack of a lane's to its next.
template <class T, class Plan>
inline constexpr int kStrideOf = static_cast<int>(Plan::kLanes) * kPack<T>;

/// What is left of a row: in 32 bits of one that is kept.
template <class Plan>
TRIAX_LANE auto length_of(std::int64_t left) {
  if constexpr (Plan::kPacks > 0) {
    return static_cast<int>(left);
  } else {
    return left;
  }
}

/// What lies at one place of several rows.
template <class T, int kRows>
struct Packs {
  Pack<T> of[kRows];
};

/// What 16 bits hold is made floats where it is used, in every pass anew: else nvcc makes the floats early and keeps
/// them, in twice the registers.
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

/// use(number, at, fetched) for each pack of the lane's, in their order: its number among those that are kept, its
/// first element, and what fetch(at) gave. kMost: packs that are asked for before any of them is used.
template <class T, class Plan, int kMost = 8, class Fetch, class Use>
TRIAX_LANE void walk(unsigned lane, std::int64_t n, Fetch fetch, Use use) {
  constexpr int kStride = kStrideOf<T, Plan>;
  constexpr int kOfPlan = Plan::kPacks > 0 ? Plan::kPacks : Plan::kPacked ? 4 : 1;
  constexpr int kTogether = kOfPlan < kMost ? kOfPlan : kMost;
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
  /// use(at, packs) for each pack of the lane's, with what was put; where nothing is kept, with what again(at) reads.
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

} // namespace triax::fused
