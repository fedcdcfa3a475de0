// SPDX-License-Identifier: Apache-2.0
// Instructions between lanes, fences and trap.
#include <bit>

#include "fence_order.hpp"
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

using U32 = std::uint32_t;

// Lane that `lane` reads from, and whether it lies in range. PTX ISA, shfl.sync.
struct Source {
  int lane;
  bool inside;
};
Source source(Shuffle how, int lane, U32 b, U32 c) {
  const int offset = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31),
            segment = static_cast<int>(c >> 8 & 31);
  const int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
  int from = 0;
  bool inside = false;
  switch (how) {
    case Shuffle::kUp:
      from = lane - offset;
      inside = from >= highest;
      break;
    case Shuffle::kDown:
      from = lane + offset;
      inside = from <= highest;
      break;
    case Shuffle::kBfly:
      from = lane ^ offset;
      inside = from <= highest;
      break;
    case Shuffle::kIdx:
      from = lowest | (offset & ~segment);
      inside = from <= highest;
      break;
  }
  return {inside ? from : lane, inside};
}

// The scheduler has brought together all live lanes of the masks.
void check_mask(Warp& w, const Instruction& i, U32 lanes, Ref ref) {
  const U32* masks = w.at<const U32>(ref);
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    if (!(masks[l] >> l & 1)) fail(w, i, l, ErrorKind::kDivergence, "lane is not in its own mask");
    if (masks[l] & ~lanes) fail(w, i, l, ErrorKind::kDivergence, "lanes of the mask do not take part");
  }
}

void shuffle(Warp& w, const Instruction& i, U32 lanes) {
  check_mask(w, i, lanes, i.o[5]);
  const U32 *values = w.at<const U32>(i.o[2]), *b = w.at<const U32>(i.o[3]), *c = w.at<const U32>(i.o[4]);
  U32 results[kLanes] = {}, inside = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const Source from = source(static_cast<Shuffle>(i.sub), l, b[l], c[l]);
    if (!(lanes >> from.lane & 1))
      fail(w, i, l, ErrorKind::kDivergence,
           "shuffle from lane " + std::to_string(from.lane) + ", which does not take part");
    results[l] = values[from.lane];
    inside |= static_cast<U32>(from.inside) << l;
  }
  store_lanes(w.at<U32>(i.o[0]), results, lanes);
  if (i.o[1].base != Ref::kSink) set_predicate(w, i.o[1], inside, lanes);
  ++w.counts.shuffles;
}

void vote(Warp& w, const Instruction& i, U32 lanes) {
  check_mask(w, i, lanes, i.o[2]);
  const U32 votes = *w.at<const U32>(i.o[1]) & lanes;
  const auto how = static_cast<Vote>(i.sub);
  if (how == Vote::kBallot) {
    U32 results[kLanes];
    for (U32& r : results) r = votes;
    return store_lanes(w.at<U32>(i.o[0]), results, lanes);
  }
  const bool result = how == Vote::kAny   ? votes != 0
                      : how == Vote::kAll ? votes == lanes
                                          : votes == 0 || votes == lanes;
  set_predicate(w, i.o[0], result ? kAllLanes : 0, lanes);
}

void active_mask(Warp& w, const Instruction& i, U32 lanes) {
  U32 results[kLanes];
  for (U32& r : results) r = lanes;
  store_lanes(w.at<U32>(i.o[0]), results, lanes);
}

void order_lanes(Warp& w, U32 mask) {
  w.lane_order.resize(kLanes);
  std::array<U32, kLanes> until{};
  for (int y = 0; y < kLanes; ++y) {
    if (!(mask >> y & 1)) continue;
    for (int x = 0; x < kLanes; ++x) until[x] = std::max(until[x], w.lane_order[y][x]);
  }
  for (int y = 0; y < kLanes; ++y)
    if (mask >> y & 1) until[y] = w.clock;
  for (int y = 0; y < kLanes; ++y)
    if (mask >> y & 1) w.lane_order[y] = until;
}

// Lanes with several masks may come at once.
void warp_barrier(Warp& w, const Instruction& i, U32 lanes) {
  check_mask(w, i, lanes, i.o[0]);
  const U32* masks = w.at<const U32>(i.o[0]);
  const U32 threads = w.block->threads - w.index * kLanes, exist = threads < kLanes ? (1u << threads) - 1 : kAllLanes;
  const U32 first = masks[std::countr_zero(lanes)];
  if ((first & exist) != exist) {
    for (U32 left = lanes; left != 0;) {
      const U32 mask = masks[std::countr_zero(left)];
      order_lanes(w, mask);
      left &= ~mask;
    }
    w.clock = ++w.block->clock;
    return;
  }
  w.lane_order.clear();
  w.ordered[w.index] = w.clock;
  w.since = w.clock = ++w.block->clock;
  if (w.block->warps.size() == 1) w.floor = w.ordered[0];
}

void fence(Warp& w, const Instruction& i, U32) {
  if (i.releases) release(*w.block);
  if (i.acquires) acquire(*w.block);
}

void trap(Warp& w, const Instruction& i, U32 lanes) {
  fail(w, i, __builtin_ctz(lanes), ErrorKind::kTrap, "trap");
}
void nothing(Warp&, const Instruction&, U32) {}

} // namespace

Execute choose_warp(const Instruction& i) {
  switch (i.op) {
    case Op::kShfl:
      return i.count == 6 ? shuffle : nullptr;
    case Op::kVote:
      return i.count == 3 ? vote : nullptr;
    case Op::kActivemask:
      return active_mask;
    case Op::kBarWarp:
      return i.count == 1 ? warp_barrier : nullptr;
    case Op::kFence:
      return fence;
    case Op::kTrap:
      return trap;
    case Op::kNop:
    case Op::kBra:
    case Op::kExit:
    case Op::kBar:
      return nothing;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
