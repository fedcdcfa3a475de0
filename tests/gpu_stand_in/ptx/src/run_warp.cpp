// SPDX-License-Identifier: Apache-2.0
// Runs a warp: lanes at the same instruction run together, those at the lowest instruction first, so that they meet
// again after a branch.
#include <algorithm>
#include <bit>
#include <limits>

#include "scheduler.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

// Lanes that run together, and the lowest instruction of the others.
struct Group {
  std::uint32_t lanes = 0;
  std::int32_t at = kNone, next = kNone;
};

Group lowest_group(const Warp& w, std::uint32_t able) {
  Group g;
  for (int l = 0; l < kLanes; ++l)
    if (able >> l & 1) g.at = std::min(g.at, w.pc[l]);
  for (int l = 0; l < kLanes; ++l) {
    if (!(able >> l & 1)) continue;
    if (w.pc[l] == g.at)
      g.lanes |= 1u << l;
    else
      g.next = std::min(g.next, w.pc[l]);
  }
  return g;
}

void move_to(Warp& w, std::uint32_t lanes, std::int32_t at) {
  for (int l = 0; l < kLanes; ++l)
    if (lanes >> l & 1) w.pc[l] = at;
}

// The lanes that a .sync instruction waits for.
std::uint32_t members(const Warp& w, const Instruction& i, std::uint32_t lanes) {
  std::size_t operand = 0;
  switch (i.op) {
    case Op::kShfl:
      operand = 5;
      break;
    case Op::kVote:
      operand = 2;
      break;
    case Op::kBarWarp:
      break;
    default: // mma, ldmatrix
      return w.live;
  }
  const auto* masks = w.at<const std::uint32_t>(i.o[operand]);
  std::uint32_t all = 0;
  for (int l = 0; l < kLanes; ++l)
    if (lanes >> l & 1) all |= masks[l];
  return all;
}

// Lanes of the mask are elsewhere: waits for them, or fails if nothing else can run.
void hold(Warp& w, const Instruction& i, const Group& g, std::uint32_t lanes, std::uint32_t missing) {
  if (w.stuck) {
    fail(w, i, __builtin_ctz(lanes), ErrorKind::kDivergence,
         "lane " + std::to_string(__builtin_ctz(missing)) + " of the mask does not come" +
             ((w.waiting & missing) ? " (it waits at a barrier)" : ""));
  }
  w.held |= g.lanes;
  move_to(w, g.lanes, g.at);
}

void wait_at_barrier(Warp& w, const Instruction& i, const Group& g, std::uint32_t lanes) {
  if (w.barrier && w.barrier != &i && i.aligned) {
    fail(w, i, __builtin_ctz(lanes), ErrorKind::kBarrier,
         "lanes of the warp wait at different barriers (the other: line " + std::to_string(w.barrier->line) + ")");
  }
  w.barrier = &i;
  w.waiting |= lanes;
  w.passed &= ~lanes;
  ++w.counts.barriers;
  move_to(w, g.lanes, g.at + 1);
}

// Marks in Warp::after what can run after the barrier at which lanes wait.
void find_after(Warp& w) {
  const std::vector<Instruction>& code = w.code->code;
  w.after_of = w.barrier;
  w.after.assign(code.size(), false);
  std::vector<std::size_t> unvisited = {static_cast<std::size_t>(w.barrier - code.data()) + 1};
  while (!unvisited.empty()) {
    const std::size_t at = unvisited.back();
    unvisited.pop_back();
    if (at >= code.size() || w.after[at]) continue;
    w.after[at] = true;
    const Instruction& i = code[at];
    const bool branches = i.control == Control::kBranch, always = i.predicate < 0;
    if (branches) unvisited.push_back(static_cast<std::size_t>(i.target));
    if (!always || !(branches || i.control == Control::kExit)) unvisited.push_back(at + 1);
  }
}

// Lanes run an instruction while others wait at an aligned barrier. They may still come to the barrier.
void note_passing(Warp& w, const Instruction& i, std::uint32_t lanes) {
  if (w.after_of != w.barrier) find_after(w);
  if (!w.after[static_cast<std::size_t>(&i - w.code->code.data())]) return;
  w.passed |= lanes;
  w.passed_at = &i;
}

void end_lanes(Warp& w, std::uint32_t lanes) {
  if (lanes & w.passed) {
    fail(w, *w.barrier, __builtin_ctz(lanes & w.passed), ErrorKind::kBarrier,
         "the lane ends without this barrier, where other lanes of its warp wait, and ran what comes after it (line " +
             std::to_string(w.passed_at->line) + "); let all lanes of a warp reach the barrier, or none");
  }
  w.live &= ~lanes;
  for (const PendingCopy& copy : w.copies) {
    if (lanes >> copy.lane & 1)
      fail(w, *copy.instruction, copy.lane, ErrorKind::kHazard, "the thread ends before a wait for this cp.async");
  }
}

std::uint32_t enabled(const Warp& w, const Instruction& i, std::uint32_t lanes) {
  if (i.predicate < 0) return lanes;
  const std::uint32_t on = *reinterpret_cast<const std::uint32_t*>(w.bases[Ref::kRegister] + i.predicate);
  return lanes & (i.negated ? ~on : on);
}

// A branch of the group. True: the group continues together at g.at.
bool branch(Warp& w, const Instruction& i, Group& g, std::uint32_t taken) {
  if (taken != g.lanes && taken != 0) {
    ++w.counts.divergent;
    move_to(w, taken, i.target);
    move_to(w, g.lanes & ~taken, g.at + 1);
    return false;
  }
  g.at = taken ? i.target : g.at + 1;
  // Others may be further behind now, or have to be met.
  if (g.next == kNone) return true;
  move_to(w, g.lanes, g.at);
  return false;
}

// Runs the group until it has to be formed anew. The kinds of its instructions are counted only on request, and what
// passes a barrier is noted only while lanes wait there: the loop without these has no test for them.
template <bool kCountKinds, bool kNotePassing>
void run_group(Warp& w, Group& g) {
  const Instruction* code = w.code->code.data();
  const auto size = static_cast<std::int32_t>(w.code->code.size());
  for (;;) {
    if (g.at >= size) return end_lanes(w, g.lanes);
    const Instruction& i = code[g.at];
    const std::uint32_t lanes = enabled(w, i, g.lanes);
    ++w.counts.instructions;
    if constexpr (kCountKinds) ++w.counts.kinds[static_cast<std::size_t>(i.kind)];
    w.counts.lanes += lanes == kAllLanes ? kLanes : static_cast<std::uint64_t>(std::popcount(lanes));
    if (i.control == Control::kBranch) {
      if (!branch(w, i, g, lanes)) return;
      continue;
    }
    if (lanes != 0) {
      if (i.control == Control::kExit) {
        end_lanes(w, lanes);
        g.lanes &= ~lanes;
        if (g.lanes == 0) return;
      } else if (i.control == Control::kBarrier) {
        return wait_at_barrier(w, i, g, lanes);
      } else {
        if (i.control == Control::kSync) {
          const std::uint32_t missing = members(w, i, lanes) & ~lanes & w.live;
          if (missing) return hold(w, i, g, lanes, missing);
        }
        if constexpr (kNotePassing) note_passing(w, i, lanes);
        i.run(w, i, lanes);
        w.stuck = false;
      }
    }
    if (++g.at >= g.next) return move_to(w, g.lanes, g.at);
  }
}

template <bool kCountKinds>
void run_groups(Warp& w) {
  for (;;) {
    std::uint32_t able = w.live & ~w.waiting & ~w.held;
    if (able == 0 && (w.held & w.live)) {
      w.held = 0;
      w.stuck = true;
      able = w.live & ~w.waiting;
    }
    if (able == 0) return;
    Group group = lowest_group(w, able);
    if (w.waiting && w.barrier->aligned)
      run_group<kCountKinds, true>(w, group);
    else
      run_group<kCountKinds, false>(w, group);
  }
}

} // namespace

void run_warp(Warp& w) {
  if (w.block->launch->profile)
    run_groups<true>(w);
  else
    run_groups<false>(w);
}

} // namespace triax::gpu_stand_in
