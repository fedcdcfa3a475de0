// How a row of n elements is shared out over a team, by n alone: pack number p belongs to lane p % lanes, and where a
// row is short enough its lanes keep it in registers between the passes over it.
//
// Threads: pure functions. Ownership, blocking, errors: none.
#pragma once

#include "packs.hpp"

namespace triax::fused {

/// kKept: floats that a lane keeps of its row; 0: none, every pass reads memory again.
template <unsigned kTeamLanes, int kTeamKept>
struct RowPlan {
  static constexpr unsigned kLanes = kTeamLanes;
  static constexpr int kKept = kTeamKept;
  static constexpr std::int64_t kLongest = static_cast<std::int64_t>(kLanes) * kKept;
};
using WarpRow = RowPlan<kWarp, 32>;        // rows of up to 1024
using ShortBlockRow = RowPlan<kBlock, 16>; // 4096
using BlockRow = RowPlan<kBlock, 32>;      // 8192
using LongRow = RowPlan<kBlock, 0>;

/// body(plan) with the plan for rows of n.
template <class Body>
void by_row_plan(std::int64_t n, Body body) {
  if (n <= WarpRow::kLongest) return body(WarpRow{});
  if (n <= ShortBlockRow::kLongest) return body(ShortBlockRow{});
  if (n <= BlockRow::kLongest) return body(BlockRow{});
  body(LongRow{});
}

/// step(number, at) for each pack of the lane's: its number among them, and its first element.
template <class T, class Plan, class Step>
TRIAX_LANE void walk(unsigned lane, std::int64_t n, Step step) {
  constexpr std::int64_t kStride = static_cast<std::int64_t>(Plan::kLanes) * kPack<T>;
  std::int64_t at = static_cast<std::int64_t>(lane) * kPack<T>;
  if constexpr (Plan::kKept > 0) {
    TRIAX_UNROLL
    for (int number = 0; number < Plan::kKept / kPack<T>; ++number) {
      if (at < n) step(number, at);
      at += kStride;
    }
  } else {
    for (; at < n; at += kStride) step(0, at);
  }
}

/// What a lane keeps of its row.
template <class T, class Plan>
class Kept {
 public:
  TRIAX_LANE void put(int number, const Values<T>& values) {
    if constexpr (Plan::kKept > 0) packs_[number] = values;
  }
  /// What was put, or where nothing is kept, what again() reads.
  template <class Again>
  TRIAX_LANE Values<T> get(int number, Again again) const {
    if constexpr (Plan::kKept > 0) {
      return packs_[number];
    } else {
      return again();
    }
  }

 private:
  Values<T> packs_[Plan::kKept > 0 ? Plan::kKept / kPack<T> : 1];
};

} // namespace triax::fused
