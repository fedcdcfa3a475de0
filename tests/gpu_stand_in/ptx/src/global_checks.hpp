// SPDX-License-Identifier: Apache-2.0
// Checks of global memory: bounds, bytes that nothing wrote, and hazards between blocks of one launch. Each two bytes
// have the tag of the block that wrote them last, with a plain access or an atomic, and of the blocks that read them.
// Accesses of two blocks are accepted where fences order them (fences.hpp): flags and atomics order the fences.
// Accesses of launches that run at the same time are hazards, too: the launch that began first finds them.
// Blocks that run at the same time on two threads of the host may miss each other's hazard. Compiled once per
// instruction set.
#pragma once

#include <atomic>

#include "fence_order.hpp"
#include "lanes.hpp"
#include "tag_vectors.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

inline constexpr std::uint64_t kAllWritten = 0x0101010101010101; // of eight bytes of MemoryRange::written

inline std::string hexadecimal(std::uint64_t x) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(x));
  return text;
}

inline bool is_in_range(const Warp& w, std::uint64_t address, std::uint64_t bytes) {
  return address - w.range.begin < w.range.bytes && bytes <= w.range.bytes - (address - w.range.begin);
}

[[gnu::noinline]] inline void find_range(Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                         std::uint64_t bytes, std::uint32_t lane_bytes, const char* what) {
  const DeviceMemory& memory = *w.block->memory;
  w.range_generation = memory.generation();
  w.range = memory.find_range(address);
  if (is_in_range(w, address, bytes)) return;
  // The first lane that is not within the allocation.
  const std::uint64_t good = w.range.bytes == 0 ? 0 : (w.range.bytes - (address - w.range.begin)) / lane_bytes;
  const std::uint64_t at = address + good * lane_bytes;
  fail(w, i, lane + static_cast<int>(good), ErrorKind::kIllegalAddress,
       std::string(what) + std::to_string(lane_bytes) + " bytes at " + hexadecimal(at) + ": " + memory.describe(at));
}

// Leaves the allocation in Warp::range, which the functions below use. `lane_bytes`: what each lane accesses, from
// `lane` on.
STAND_IN_INLINE void check_bounds(Warp& w, const Instruction& i, int lane, std::uint64_t address, std::uint64_t bytes,
                                  std::uint32_t lane_bytes, const char* what) {
  if (w.block->memory->generation() == w.range_generation && is_in_range(w, address, bytes)) return;
  find_range(w, i, lane, address, bytes, lane_bytes, what);
}

STAND_IN_INLINE std::byte* data_at(const Warp& w, std::uint64_t address) {
  return w.range.data + (address - w.range.begin);
}

STAND_IN_INLINE void mark_written(const Warp& w, std::uint64_t address, std::uint32_t bytes) {
  if (w.range.written) std::memset(w.range.written + (address - w.range.begin), 1, bytes);
}

[[noreturn]] inline void read_of_unwritten(const Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                           std::uint32_t lane_bytes) {
  std::uint32_t offset = 0;
  while (w.range.written[address - w.range.begin + offset]) ++offset;
  fail(w, i, lane + static_cast<int>(offset / lane_bytes), ErrorKind::kUnwritten,
       "reads global memory that nothing wrote, at " + hexadecimal(address + offset) + ": " +
           w.block->memory->describe(address + offset));
}

STAND_IN_INLINE void check_written(Warp& w, const Instruction& i, int lane, std::uint64_t address, std::uint32_t bytes,
                                   std::uint32_t lane_bytes) {
  if (!w.range.written) return;
  const std::uint8_t* first = w.range.written + (address - w.range.begin);
  std::uint64_t all = kAllWritten; // eight bytes at a time
  std::uint32_t n = 0;
  for (; n + 8 <= bytes; n += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, first + n, 8);
    all &= eight;
  }
  for (; n < bytes; ++n) all &= first[n] * kAllWritten;
  if (all != kAllWritten) read_of_unwritten(w, i, lane, address, lane_bytes);
}

[[noreturn]] inline void global_hazard(const Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                       std::uint32_t other, const char* what) {
  const Block& b = *w.block;
  const std::string where = ", at " + hexadecimal(address) + ": " + b.memory->describe(address);
  const std::string how = std::string(what) + (other & kAtomicTag ? "an atomic of " : "");
  if (is_of_another_launch(b, other)) {
    fail(w, i, lane, ErrorKind::kHazard,
         how + "another launch, which runs at the same time" + where + "; order their streams with an event");
  }
  const std::string who = other == b.many_tag ? "other blocks"
                                              : "block " + std::to_string(period_of(b, other) % b.fences->blocks) +
                                                    " (in the order of the grid)";
  fail(w, i, lane, ErrorKind::kHazard,
       how + who + " of this launch" + where + "; use an atomic instruction, or a fence and a flag");
}

[[gnu::noinline]] inline void explain_global_read(const Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                                  std::uint32_t count, std::uint32_t lane_bytes) {
  const Block& b = *w.block;
  const std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  for (std::uint32_t g = 0; g < count; ++g) {
    if (is_hazard(b, writes[g])) {
      global_hazard(w, i, lane + static_cast<int>(2 * g / lane_bytes), address + 2 * g, writes[g],
                    "reads what was written by ");
    }
  }
}

// In kernels with fences: a read that is before this one needs no tag any more.
[[gnu::noinline]] inline void tag_ordered_read(Block& b, std::uint32_t* reads, std::uint32_t count) {
  for (std::uint32_t g = 0; g < count; ++g) reads[g] = is_hazard(b, reads[g]) ? b.many_tag : b.tag;
  b.tag_used = true;
}

STAND_IN_INLINE void check_global_read(Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                       std::uint32_t bytes, std::uint32_t lane_bytes) {
  if (!w.range.write_tags) return;
  Block& b = *w.block;
  const std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  std::uint32_t* reads = w.range.read_tags + (address - w.range.begin) / 2;
  const std::uint32_t count = bytes / 2, first = b.first_tag, tag = b.tag, many = b.many_tag;
  const bool fences = b.fences->periods > 1;
  AnyTag bad;
  for_tags(count, [&](std::uint32_t g, auto vector) {
    const auto write = vector.load(writes + g), read = vector.load(reads + g);
    bad.add((write >= first) & (write != tag));
    if (!fences) vector.store(reads + g, ((read >= first) & (read != tag)) ? vector.all(many) : vector.all(tag));
  });
  if (bad.any()) explain_global_read(w, i, lane, address, count, lane_bytes);
  if (fences) tag_ordered_read(b, reads, count);
}

// A strong load comes after the atomics whose value it reads, and so does what this block does then.
[[gnu::noinline]] inline void observe_atomics(const Warp& w, std::uint64_t address, std::uint32_t bytes) {
  if (!w.range.write_tags) return;
  std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  for (std::uint32_t g = 0; g < bytes / 2; ++g)
    if ((writes[g] & kAtomicTag) && is_hazard(*w.block, writes[g])) writes[g] = 0;
}

[[gnu::noinline]] inline void explain_global_write(const Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                                   std::uint32_t count, std::uint32_t lane_bytes,
                                                   const std::byte* data) {
  const Block& b = *w.block;
  const std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  const std::uint32_t* reads = w.range.read_tags + (address - w.range.begin) / 2;
  for (std::uint32_t g = 0; g < count; ++g) {
    const int who = lane + static_cast<int>(2 * g / lane_bytes);
    const std::uint64_t at = address + 2 * g;
    if (is_hazard(b, reads[g])) global_hazard(w, i, who, at, reads[g], "writes what was read by ");
    if (is_hazard(b, writes[g]) && std::memcmp(data + 2 * g, data_at(w, at), 2) != 0) {
      global_hazard(w, i, who, at, writes[g], "writes another value than was written by ");
    }
  }
}

STAND_IN_INLINE void check_global_write(Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                        std::uint32_t bytes, std::uint32_t lane_bytes, const std::byte* data) {
  if (!w.range.write_tags) return;
  const Block& b = *w.block;
  const std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  const std::uint32_t* reads = w.range.read_tags + (address - w.range.begin) / 2;
  const std::uint32_t count = bytes / 2, first = b.first_tag, tag = b.tag;
  AnyTag bad;
  for_tags(count, [&](std::uint32_t g, auto vector) {
    const auto write = vector.load(writes + g), read = vector.load(reads + g);
    bad.add(((write >= first) & (write != tag)) | ((read >= first) & (read != tag)));
  });
  if (bad.any()) explain_global_write(w, i, lane, address, count, lane_bytes, data);
}

// After the data: a block that finds the tag compares its own data with these.
STAND_IN_INLINE void tag_global_write(Warp& w, std::uint64_t address, std::uint32_t bytes) {
  if (!w.range.write_tags) return;
  w.block->tag_used = true;
  std::atomic_thread_fence(std::memory_order_release);
  std::uint32_t* writes = w.range.write_tags + (address - w.range.begin) / 2;
  for_tags(bytes / 2, [&](std::uint32_t g, auto vector) { vector.store(writes + g, vector.all(w.block->tag)); });
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
