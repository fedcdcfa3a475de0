// SPDX-License-Identifier: Apache-2.0
// Hazards in shared memory. Each two bytes have a tag of their last write and one of their last reads: the interval,
// the warp and the lane. A barrier or bar.warp.sync begins a new interval. Two accesses are ordered if one lane made
// both, or if the second comes after the first's interval: Warp::ordered has, for each warp, the last interval that
// this warp comes after, and Warp::lane_order has it for each lane. Compiled once per instruction set. One-byte
// accesses are not compared: two bytes share a tag, and a one-byte access leaves it unchanged.
#pragma once

#include <algorithm>

#include "lanes.hpp"
#include "tag_vectors.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

inline constexpr std::uint32_t kManyLanes = 63, kManyWarps = 63, kWarpBits = 63 << 6;
// Of the six bits for the warp, the tag of a write needs five: a block has at most 32 warps. The sixth marks an atomic
// access, which other atomics may follow. It was made by one lane, by kManyLanes of its warp, or by
// kLanesOfWarps, which only barriers order.
inline constexpr std::uint32_t kAtomicBit = 32 << 6, kLanesOfWarps = 62;

// Whether the tag is older than this block, so the block has not written the bytes.
inline bool is_unwritten(const Block& b, std::uint32_t tag) {
  return tag < b.old_tag;
}
inline std::uint32_t shared_tag(const Warp& w, int lane) {
  return w.clock << kTagClockShift | w.index << 6 | static_cast<std::uint32_t>(lane);
}
// Tags below this limit are ordered before this warp.
inline std::uint32_t ordered_limit(const Warp& w) {
  return (w.floor + 1) << kTagClockShift;
}

// Whether an access of another lane of this warp, since the last barrier of all lanes, is ordered before `mine`: one
// lane, or all as kManyLanes.
[[gnu::noinline]] inline bool lane_is_before(const Warp& w, std::uint32_t lane, std::uint32_t clock,
                                             std::uint32_t mine) {
  if (lane == mine && lane != kManyLanes) return true;
  if (w.lane_order.empty()) return false;
  for (std::uint32_t y = 0; y < kLanes; ++y) {
    if ((mine != kManyLanes && y != mine) || y == lane) continue;
    const auto& until = w.lane_order[y];
    // For an access by several lanes it is not known which: the access counts as ordered if it is for any lane.
    if (clock > (lane == kManyLanes ? *std::ranges::max_element(until) : until[lane])) return false;
  }
  return true;
}

// Whether an access whose tag is at or above the limit is nevertheless ordered before this one.
inline bool before(const Warp& w, std::uint32_t tag, std::uint32_t mine) {
  const std::uint32_t warp = tag >> 6 & 63, clock = tag >> kTagClockShift;
  if (warp == w.index) return clock < w.since || lane_is_before(w, tag & 63, clock, mine & 63);
  return warp < w.ordered.size() && clock <= w.ordered[warp]; // false for kManyWarps
}

// The same for the tag of a write. A lane comes after its own atomics, too.
inline bool write_is_before(const Warp& w, std::uint32_t tag, std::uint32_t mine) {
  if ((tag & kAtomicBit) == 0) return before(w, tag, mine);
  return (tag & 63) != kLanesOfWarps && before(w, tag ^ kAtomicBit, mine);
}

[[noreturn]] inline void shared_hazard(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                       std::uint32_t other, const std::string& what) {
  const std::uint32_t warp = other >> 6 & 63, their = other & 63;
  const std::string who = warp == w.index      ? (their == kManyLanes ? "other lanes of this warp"
                                                                      : "lane " + std::to_string(their) + " of this warp")
                          : warp == kManyWarps ? "other warps"
                                               : "warp " + std::to_string(warp);
  fail(w, i, lane, ErrorKind::kHazard,
       what + who + " at shared address " + std::to_string(offset) +
           (warp == w.index ? ", and no bar.warp.sync or barrier lies between" : ", and no barrier lies between"));
}

[[noreturn]] inline void hazard_with_write(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                           std::uint32_t other, const std::string& what) {
  if ((other & kAtomicBit) == 0) shared_hazard(w, i, lane, offset, other, what);
  const std::uint32_t who = (other & 63) == kLanesOfWarps ? other | kWarpBits : other ^ kAtomicBit;
  shared_hazard(w, i, lane, offset, who, what + "an atomic of ");
}

[[gnu::noinline]] inline void explain_shared_read(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                                  std::uint32_t count, std::uint32_t lane_bytes) {
  const std::uint32_t limit = ordered_limit(w), first = shared_tag(w, lane_bytes ? lane : kManyLanes);
  for (std::uint32_t g = 0; g < count; ++g) {
    const std::uint32_t tag = w.block->write_tags[offset / 2 + g], at = offset + 2 * g;
    const std::uint32_t of_lane = lane_bytes ? 2 * g / lane_bytes : 0;
    const int who = lane + static_cast<int>(of_lane);
    if (is_unwritten(*w.block, tag))
      fail(w, i, who, ErrorKind::kUnwritten,
           "reads shared memory that nothing wrote, at shared address " + std::to_string(at));
    if (tag == kPending)
      fail(w, i, who, ErrorKind::kHazard,
           "reads what a cp.async copies, before its wait, at shared address " + std::to_string(at));
    const bool is_compared = lane_bytes != 1 && !(i.strong && (tag & kAtomicBit) != 0);
    if (tag >= limit && is_compared && !write_is_before(w, tag, first + of_lane))
      hazard_with_write(w, i, who, at, tag, "reads what was written by ");
  }
}

// Tags of a range. Only accesses of one byte begin or end within a tag.
STAND_IN_INLINE std::uint32_t count_of_tags(std::uint32_t offset, std::uint32_t bytes, std::uint32_t lane_bytes) {
  return lane_bytes == 1 ? (offset + bytes + 1) / 2 - offset / 2 : bytes / 2;
}

// `lane_bytes`: how much of the range each lane accesses, the first of them `lane`; 0: lanes are not distinguished.
STAND_IN_INLINE void check_shared_read(Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                       std::uint32_t bytes, std::uint32_t lane_bytes) {
  const std::uint32_t* writes = w.block->write_tags.data() + offset / 2;
  std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const std::uint32_t count = count_of_tags(offset, bytes, lane_bytes), limit = ordered_limit(w),
                      old = w.block->old_tag;
  AnyTag bad;
  for_tags(count, [&](std::uint32_t g, auto vector) { bad.add(vector.load(writes + g) - old >= limit - old); });
  if (bad.any()) explain_shared_read(w, i, lane, offset, count, lane_bytes);
  if (lane_bytes == 1 || i.strong) return;
  const std::uint32_t first = shared_tag(w, lane_bytes ? lane : kManyLanes);
  // Lanes access powers of two: tags per lane as a shift.
  const int shift = lane_bytes > 1 ? std::countr_zero(lane_bytes) - 1 : 31;
  const std::uint32_t several = w.block->clock << kTagClockShift | 0xFFF;
  for_tags(count, [&](std::uint32_t g, auto vector) {
    const auto r = vector.load(reads + g), me = vector.steps(first, g, shift);
    const auto same = (r >> kTagClockShift) == (me >> kTagClockShift) ? (r == me ? me : me | kManyLanes) : me;
    vector.store(reads + g, r < limit ? me : ((r ^ me) & kWarpBits) == 0 ? same : vector.all(several));
  });
}

// A row of ldmatrix: 16 bytes that the whole warp reads.
STAND_IN_INLINE void check_shared_row(Warp& w, const Instruction& i, int lane, std::uint32_t offset) {
  using Row = TagVector<8>;
  const std::uint32_t limit = ordered_limit(w), old = w.block->old_tag, mine = shared_tag(w, kManyLanes);
  std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const auto write = Row::load(w.block->write_tags.data() + offset / 2), read = Row::load(reads);
  AnyTag bad;
  bad.add((write - old >= limit - old) | ((read >= limit) & (read != mine)));
  if (bad.any()) return check_shared_read(w, i, lane, offset, 16, 0);
  Row::store(reads, Row::all(mine));
}

[[noreturn]] inline void write_where_copied(const Warp& w, const Instruction& i, int lane, std::uint32_t offset) {
  fail(w, i, lane, ErrorKind::kHazard,
       "writes where a cp.async copies, before its wait, at shared address " + std::to_string(offset));
}

[[gnu::noinline]] inline void explain_shared_write(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                                   std::uint32_t count, std::uint32_t lane_bytes,
                                                   const std::byte* data) {
  Block& b = *w.block;
  const std::uint32_t limit = ordered_limit(w), first = shared_tag(w, lane);
  for (std::uint32_t g = 0; g < count; ++g) {
    const std::uint32_t at = offset + 2 * g, mine = first + 2 * g / lane_bytes;
    const std::uint32_t write = b.write_tags[at / 2], read = b.read_tags[at / 2];
    const int who = lane + static_cast<int>(2 * g / lane_bytes);
    if (write == kPending) write_where_copied(w, i, who, at);
    if (read >= limit && !before(w, read, mine)) shared_hazard(w, i, who, at, read, "writes what was read by ");
    if (write >= limit && !write_is_before(w, write, mine) &&
        (!data || std::memcmp(data + 2 * g, b.shared_at(at), 2) != 0))
      hazard_with_write(w, i, who, at, write, "writes another value than was written by ");
  }
}

// A write that is not compared does not change the tags of compared writes.
[[gnu::noinline]] inline void keep_tags(const Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                        std::uint32_t count) {
  for (std::uint32_t g = offset / 2; g < offset / 2 + count; ++g) {
    std::uint32_t& tag = w.block->write_tags[g];
    if (tag == kPending) write_where_copied(w, i, lane, 2 * g);
    tag = std::max(tag, w.block->old_tag);
  }
}

// `data`: what is written, to accept the same value; null: not known yet.
STAND_IN_INLINE void check_shared_write(Warp& w, const Instruction& i, int lane, std::uint32_t offset,
                                        std::uint32_t bytes, std::uint32_t lane_bytes, const std::byte* data) {
  std::uint32_t* writes = w.block->write_tags.data() + offset / 2;
  const std::uint32_t* reads = w.block->read_tags.data() + offset / 2;
  const std::uint32_t count = count_of_tags(offset, bytes, lane_bytes), limit = ordered_limit(w);
  if (lane_bytes == 1 || i.strong) return keep_tags(w, i, lane, offset, count);
  AnyTag bad;
  for_tags(count, [&](std::uint32_t g, auto vector) {
    bad.add((vector.load(writes + g) >= limit) | (vector.load(reads + g) >= limit));
  });
  if (bad.any()) explain_shared_write(w, i, lane, offset, count, lane_bytes, data);
  const std::uint32_t first = shared_tag(w, lane);
  const int shift = std::countr_zero(lane_bytes) - 1;
  for_tags(count, [&](std::uint32_t g, auto vector) { vector.store(writes + g, vector.steps(first, g, shift)); });
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
