// SPDX-License-Identifier: Apache-2.0
// Hazards in shared memory. Each two bytes have a tag of their last write and one of their last reads: the interval,
// the warp and the lane. A barrier or bar.warp.sync begins a new interval. Accesses are ordered if the interval of the
// first is at most what the second's warp is known to come after (Warp::ordered), or if one lane made both. Compiled
// once per instruction set. One-byte accesses are not looked at: they share a tag.
#pragma once

#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

inline constexpr std::uint32_t kUnwritten = 0, kOld = 1, kPending = 0xFFFFFFFF, kManyLanes = 63, kManyWarps = 63;

inline std::uint32_t shared_tag(const Warp& w, int lane) {
  return w.clock << 12 | w.index << 6 | static_cast<std::uint32_t>(lane);
}
inline std::uint32_t ordered_limit(const Warp& w) {
  return (w.floor + 1) << 12;
} // tags below are before this warp

// A tag at or above the limit: the access is before this one all the same.
inline bool before(const Warp& w, std::uint32_t tag, std::uint32_t mine) {
  const std::uint32_t warp = tag >> 6 & 63, clock = tag >> 12;
  if (warp == w.index) return clock != w.clock || tag == mine;
  return warp < w.ordered.size() && clock <= w.ordered[warp]; // not: kManyWarps, or the mark of atomic accesses
}

[[noreturn]] inline void shared_hazard(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                       std::uint32_t other, const char* what) {
  const std::uint32_t warp = other >> 6 & 63, their = other & 63;
  const std::string who = warp == w.index      ? (their == kManyLanes ? "other lanes of this warp"
                                                                      : "lane " + std::to_string(their) + " of this warp")
                          : warp == kManyWarps ? "other warps"
                                               : "warp " + std::to_string(warp);
  fail(w, i, lane, ErrorKind::kHazard,
       std::string(what) + who + " at shared address " + std::to_string(offset) +
           (warp == w.index ? ", and no bar.warp.sync or barrier lies between" : ", and no barrier lies between"));
}

// `lane_bytes`: how much of the range each lane accesses, the first of them `lane`; 0: lanes are not distinguished.
inline void check_shared_read(Warp& w, const Instruction& i, int lane, std::uint32_t offset, std::uint32_t bytes,
                              std::uint32_t lane_bytes) {
  std::uint32_t* writes = w.block->write_tags.data() + offset / 2;
  std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const std::uint32_t count = bytes < 2 ? 1 : bytes / 2, limit = ordered_limit(w);
  std::uint32_t bad = 0;
  for (std::uint32_t g = 0; g < count; ++g) bad |= writes[g] - 1 >= limit - 1;
  const std::uint32_t first = shared_tag(w, lane_bytes ? lane : kManyLanes);
  // Lanes access powers of two: tags per lane as a shift.
  const int shift = lane_bytes > 1 ? std::countr_zero(lane_bytes) - 1 : 31;
  auto mine = [&](std::uint32_t g) { return first + (g >> shift); };
  if (bad) {
    for (std::uint32_t g = 0; g < count; ++g) {
      const std::uint32_t tag = writes[g], at = offset + 2 * g;
      const int who = lane_bytes ? lane + static_cast<int>(2 * g / lane_bytes) : lane;
      if (tag == kUnwritten)
        fail(w, i, who, ErrorKind::kUnwritten,
             "reads shared memory that nothing wrote, at shared address " + std::to_string(at));
      if (tag == kPending)
        fail(w, i, who, ErrorKind::kHazard,
             "reads what a cp.async copies, before its wait, at shared address " + std::to_string(at));
      if (tag >= limit && lane_bytes != 1 && !before(w, tag, mine(g)))
        shared_hazard(w, i, who, at, tag, "reads what was written by ");
    }
  }
  if (lane_bytes == 1 || i.strong) return;
  const std::uint32_t several = w.block->clock << 12 | 0xFFF;
  for (std::uint32_t g = 0; g < count; ++g) {
    const std::uint32_t r = reads[g], me = mine(g);
    const std::uint32_t same = r >> 12 == me >> 12 && r != me ? me | kManyLanes : me;
    reads[g] = r < limit || ((r ^ me) & 0xFC0) == 0 ? (r < limit ? me : same) : several;
  }
}

// A row of ldmatrix: 16 bytes that the whole warp reads. The usual case has a fixed number of tags, which becomes
// vector code.
inline void check_shared_row(Warp& w, const Instruction& i, int lane, std::uint32_t offset) {
  constexpr int kTags = 8;
  const std::uint32_t* writes = w.block->write_tags.data() + offset / 2;
  std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const std::uint32_t limit = ordered_limit(w), mine = shared_tag(w, kManyLanes);
  std::uint32_t bad = 0;
  for (int g = 0; g < kTags; ++g) bad |= (writes[g] - 1 >= limit - 1) | ((reads[g] >= limit) & (reads[g] != mine));
  if (bad) return check_shared_read(w, i, lane, offset, 16, 0);
  for (int g = 0; g < kTags; ++g) reads[g] = mine;
}

// `data`: what is written, to accept the same value; null: not known yet.
inline void check_shared_write(Warp& w, const Instruction& i, int lane, std::uint32_t offset, std::uint32_t bytes,
                               std::uint32_t lane_bytes, const std::byte* data) {
  std::uint32_t* writes = w.block->write_tags.data() + offset / 2;
  std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const std::uint32_t count = bytes < 2 ? 1 : bytes / 2, limit = ordered_limit(w);
  if (lane_bytes == 1 || i.strong) {
    for (std::uint32_t g = 0; g < count; ++g) writes[g] = kOld;
    return;
  }
  std::uint32_t bad = 0;
  for (std::uint32_t g = 0; g < count; ++g) bad |= (writes[g] >= limit) | (reads[g] >= limit);
  const std::uint32_t first = shared_tag(w, lane);
  if (bad) {
    for (std::uint32_t g = 0; g < count; ++g) {
      const std::uint32_t at = offset + 2 * g, mine = first + 2 * g / lane_bytes;
      const int who = lane + static_cast<int>(2 * g / lane_bytes);
      if (writes[g] == kPending)
        fail(w, i, who, ErrorKind::kHazard,
             "writes where a cp.async copies, before its wait, at shared address " + std::to_string(at));
      if (reads[g] >= limit && !before(w, reads[g], mine))
        shared_hazard(w, i, who, at, reads[g], "writes what was read by ");
      if (writes[g] >= limit && !before(w, writes[g], mine) &&
          (!data || std::memcmp(data + 2 * g, w.block->shared_at(at), 2) != 0)) {
        shared_hazard(w, i, who, at, writes[g], "writes another value than was written by ");
      }
    }
  }
  const int shift = std::countr_zero(lane_bytes) - 1;
  for (std::uint32_t g = 0; g < count; ++g) writes[g] = first + (g >> shift);
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
