// SPDX-License-Identifier: Apache-2.0
// Barriers of a block: arrival, opening, and what the threads that wait there are ordered by; intervals between them.
#include <algorithm>

#include "scheduler.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::uint32_t kMaxClock = 1u << 19, kMaxFirstClock = kMaxClock / 4;

bool reduces(const Instruction& i) {
  return i.sub >= static_cast<std::uint8_t>(Barrier::kRedAnd);
}

// The clock at which a block begins. 0 is of no block: tags of 0 are not of its accesses.
void begin_at(Block& b, std::uint32_t clock) {
  b.first_clock = b.clock = clock;
  b.old_tag = clock << kTagClockShift;
}

// Intervals are numbered anew when all accesses so far are ordered before all that follow.
void restart_clock(Block& b) {
  const std::uint32_t before = b.old_tag;
  begin_at(b, 1);
  for (std::uint32_t& tag : b.write_tags) tag = tag < before ? 0 : tag == kPending ? tag : b.old_tag;
  std::fill(b.read_tags.begin(), b.read_tags.end(), 0);
  for (Warp& w : b.warps) w.lane_order.clear();
  for (BarrierState& state : b.barriers) std::fill(state.before.begin(), state.before.end(), b.clock);
}

void order_all(Block& b) {
  if (b.clock > kMaxClock) restart_clock(b);
  const std::uint32_t floor = b.clock;
  for (Warp& w : b.warps) {
    std::fill(w.ordered.begin(), w.ordered.end(), floor);
    w.floor = floor;
    w.lane_order.clear();
    w.since = w.clock = ++b.clock;
  }
}

// What lies before an arrival lies before all that follows the opening.
void add_arrival(BarrierState& state, const Warp& w) {
  state.before.resize(w.ordered.size(), 0);
  for (std::size_t other = 0; other < state.before.size(); ++other)
    state.before[other] = std::max(state.before[other], w.ordered[other]);
  state.before[w.index] = std::max(state.before[w.index], w.clock);
}

void order_some(Block& b, const BarrierState& state) {
  for (const std::uint32_t n : state.waiting) {
    Warp& w = b.warps[n];
    w.ordered = state.before;
    w.floor = *std::min_element(w.ordered.begin(), w.ordered.end());
    w.lane_order.clear();
    w.since = w.clock = ++b.clock;
  }
}

void give_result(Warp& w, const BarrierState& state) {
  const Instruction& i = *w.barrier;
  const auto kind = static_cast<Barrier>(i.sub);
  if (kind == Barrier::kRedPopc) {
    for (int l = 0; l < kLanes; ++l)
      if (w.waiting >> l & 1) w.set(i.o[0], l, state.count);
    return;
  }
  std::uint32_t* p = w.at<std::uint32_t>(i.o[0]);
  const bool result = kind == Barrier::kRedAnd ? state.all != 0 : state.any != 0;
  *p = (*p & ~w.waiting) | (result ? w.waiting : 0);
}

void open(Block& b, BarrierState& state) {
  const bool all = state.expected == 0;
  for (const std::uint32_t n : state.waiting) {
    Warp& w = b.warps[n];
    if (reduces(*w.barrier)) give_result(w, state);
    w.waiting = 0;
    w.barrier = nullptr;
  }
  if (all)
    order_all(b);
  else
    order_some(b, state);
  state = {};
}

} // namespace

// The tags of earlier blocks are below old_tag, so that they need not be cleared for each block.
void begin_clock(Block& b) {
  if (b.clock > kMaxFirstClock) {
    std::fill(b.write_tags.begin(), b.write_tags.end(), 0);
    std::fill(b.read_tags.begin(), b.read_tags.end(), 0);
    b.clock = 0;
  }
  begin_at(b, b.clock + 1);
}

void forget_clock(Block& b) {
  b.clock = kMaxFirstClock + 1;
}

void arrive(Warp& w) {
  Block& b = *w.block;
  const Instruction& i = *w.barrier;
  const std::size_t first = reduces(i) ? 1 : 0;
  const int lane = __builtin_ctz(w.waiting);
  const std::uint64_t id = w.value(i.o[first], lane);
  if (id >= 16) fail(w, i, lane, ErrorKind::kBarrier, "barrier " + std::to_string(id) + " does not exist; 0 to 15 do");
  const bool counted = i.count > (reduces(i) ? 3 : 1);
  const auto expected = counted ? static_cast<std::uint32_t>(w.value(i.o[first + 1], lane)) : 0;
  if (counted && (expected == 0 || expected % kLanes != 0)) {
    fail(w, i, lane, ErrorKind::kBarrier,
         "thread count " + std::to_string(expected) + " of the barrier is not a multiple of 32");
  }
  BarrierState& state = b.barriers[id];
  if (state.arrived != 0 && state.expected != expected) {
    fail(w, i, lane, ErrorKind::kBarrier,
         "barrier " + std::to_string(id) + " has another thread count here than at its other arrivals");
  }
  state.expected = expected;
  state.arrived += kLanes; // a warp counts as a whole
  if (counted) add_arrival(state, w);
  if (reduces(i)) {
    const std::uint32_t votes = *w.at<const std::uint32_t>(i.o[i.count - 1]) & w.waiting;
    state.any |= votes != 0;
    state.all &= votes == w.waiting;
    state.count += static_cast<std::uint32_t>(__builtin_popcount(votes));
  }
  if (static_cast<Barrier>(i.sub) == Barrier::kArrive) {
    w.waiting = 0;
    w.barrier = nullptr;
    w.clock = ++b.clock; // what follows is not before the barrier
  } else {
    state.waiting.push_back(w.index);
  }
  // A later arrival is one at the next barrier of this number.
  if (counted && state.arrived == expected) open(b, state);
}

bool open_barriers(Block& b) {
  bool can_run = false;
  std::size_t live = 0;
  for (const Warp& w : b.warps) {
    live += w.live != 0;
    can_run |= w.live != 0 && !w.waiting; // its barrier opened at the last arrival
  }
  for (BarrierState& state : b.barriers) {
    // Warps that have ended count as arrived at a barrier of the whole block.
    if (state.expected != 0 || state.waiting.empty() || state.waiting.size() < live) continue;
    open(b, state);
    can_run = true;
  }
  return can_run;
}

void fail_deadlock(Block& b) {
  std::string who;
  const Warp* first = nullptr;
  for (const Warp& w : b.warps) {
    if (!w.barrier) continue;
    if (!first) first = &w;
    who += (who.empty() ? "warp " : ", warp ") + std::to_string(w.index) + " waits at line " +
           std::to_string(w.barrier->line);
  }
  fail(*first, *first->barrier, __builtin_ctz(first->waiting), ErrorKind::kBarrier,
       "barrier that not all threads reach: " + who);
}

} // namespace triax::gpu_stand_in
