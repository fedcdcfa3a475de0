// SPDX-License-Identifier: Apache-2.0
// Order of blocks by fences. The fences of a launch are numbered. An access is before one of another block if its
// period ended with a fence that has a lower number than the other block's last fence: the writer's fence follows its
// write, the reader's fence follows that one, and the read follows the reader's fence. A release is a fence before an
// access, an acquire is one after it. Compiled once per instruction set.
#pragma once

#include "fences.hpp"
#include "warp.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

// The tag of a plain access is even; that of an atomic is the next one.
inline constexpr std::uint32_t kAtomicTag = 1;

inline std::uint32_t period_of(const Block& b, std::uint32_t tag) {
  return (tag - b.first_tag) / 2;
}

// A period without accesses continues, so that loops of fences use up none.
inline void release(Block& b) {
  if (!b.tag_used) return;
  FenceLog& log = *b.fences;
  std::atomic<std::uint64_t>& released = log.released[period_of(b, b.tag)];
  if (released.load(std::memory_order_relaxed) == 0) released.store(++log.last, std::memory_order_release);
  if (period_of(b, b.tag) + log.blocks >= log.blocks * log.periods) return;
  b.tag += 2 * log.blocks;
  b.tag_used = false;
}

inline void acquire(Block& b) {
  b.acquired = ++b.fences->last;
}

// Later tags are of launches that began later, and run at the same time.
inline bool is_of_another_launch(const Block& b, std::uint32_t other) {
  return other > b.many_tag;
}

inline bool is_of_this_block(const Block& b, std::uint32_t other) {
  return other >= b.first_tag && other < b.many_tag && period_of(b, other) % b.fences->blocks == b.number;
}

// Of another launch it is not known which of its blocks made a fence.
inline bool fences_order(const Block& b, std::uint32_t other) {
  if (b.acquired == 0 || other == b.many_tag) return false;
  if (is_of_another_launch(b, other)) return true;
  const std::uint64_t released = b.fences->released[period_of(b, other)].load(std::memory_order_acquire);
  return released != 0 && released < b.acquired;
}

// An access with this tag is of another block or launch, and nothing orders it before the next access of this block.
inline bool is_hazard(const Block& b, std::uint32_t other) {
  return other >= b.first_tag && !is_of_this_block(b, other) && !fences_order(b, other);
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
