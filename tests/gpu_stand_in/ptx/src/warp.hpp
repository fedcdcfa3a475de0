// SPDX-License-Identifier: Apache-2.0
// State of a warp and of its block while they run.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "code.hpp"
#include "sector_set.hpp"

namespace triax::gpu_stand_in {

struct Block;
struct FenceLog;

inline constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

// Vectors load 32 lanes of a register at once.
struct alignas(64) Aligned {
  std::byte bytes[64];
};

// Tags of shared memory: interval, warp, lane; see shared_hazards.hpp.
inline constexpr std::uint32_t kTagClockShift = 12, kPending = 0xFFFFFFFF;

// Results that are not read, then lanes of cvt while their width changes.
inline constexpr std::uint32_t kSinkBytes = 768, kNarrowSource = 256, kNarrowResult = 512;

// A copy that cp.async began and no wait has ended.
struct PendingCopy {
  std::uint32_t to = 0, bytes = 0, source_bytes = 0;
  std::uint64_t from = 0;
  std::uint8_t lane = 0;
  std::uint32_t group = 0; // of its lane; the open group has the highest number
  const Instruction* instruction = nullptr;
  std::byte source[16] = {}; // what it reads, when it began
};

struct Warp {
  Block* block = nullptr;
  const KernelCode* code = nullptr;
  std::uint32_t index = 0;
  std::byte* bases[3] = {}; // by Ref::Base
  std::vector<Aligned> registers, sink;
  std::vector<std::byte> local; // local_bytes of each lane
  std::int32_t pc[kLanes] = {};
  std::uint32_t live = 0;
  std::uint32_t waiting = 0;            // at a barrier
  std::uint32_t held = 0;               // at a .sync instruction, until the other lanes of its mask come
  const Instruction* barrier = nullptr; // where `waiting` lanes wait
  bool stuck = false;                   // all other lanes wait or have ended since lanes were held
  // While lanes wait at an aligned barrier: lanes that ran what comes after it, and the last such instruction; the
  // barrier for which `after` says which instructions those are.
  std::uint32_t passed = 0;
  const Instruction* passed_at = nullptr;
  const Instruction* after_of = nullptr;
  std::vector<bool> after;
  std::vector<PendingCopy> copies;
  std::uint32_t groups[kLanes] = {}; // commits of each lane
  // Order of shared memory: the interval that this warp is in, and up to which intervals other warps are before it.
  // Its lanes are ordered up to the begin of interval `since`, which is earlier than `clock` after a bar.arrive or
  // a bar.warp.sync of some lanes.
  std::uint32_t clock = 1, since = 1, floor = 0;
  std::vector<std::uint32_t> ordered;
  // After a bar.warp.sync of some lanes: up to which interval lane x is before lane y, at [y][x].
  std::vector<std::array<std::uint32_t, kLanes>> lane_order;
  // The range of global memory that was looked up last.
  MemoryRange range;
  std::uint64_t range_generation = 0;
  Profile counts;

  template <class T>
  T* at(Ref ref) const {
    return reinterpret_cast<T*>(bases[ref.base] + ref.offset);
  }
  std::uint64_t value(Ref ref, int lane) const {
    return ref.width == 8 ? at<std::uint64_t>(ref)[lane] : at<std::uint32_t>(ref)[lane];
  }
  void set(Ref ref, int lane, std::uint64_t bits) {
    if (ref.width == 8)
      at<std::uint64_t>(ref)[lane] = bits;
    else
      at<std::uint32_t>(ref)[lane] = static_cast<std::uint32_t>(bits);
  }
};

struct BarrierState {
  std::uint32_t arrived = 0, expected = 0;   // threads; expected 0: all of the block
  std::uint32_t any = 0, all = 1, count = 0; // of bar.red
  std::vector<std::uint32_t> waiting;        // warps that arrived and wait; those of bar.arrive do not
  std::vector<std::uint32_t> before;         // with a thread count: up to which interval of each warp it comes after
};

struct Block {
  const Launch* launch = nullptr;
  const Kernel* kernel = nullptr;
  DeviceMemory* memory = nullptr;
  Dim3 at;
  std::uint32_t threads = 0, shared_bytes = 0;
  std::vector<Aligned> shared;
  // One tag for each two bytes of shared memory; see shared_hazards.hpp.
  std::vector<std::uint32_t> write_tags, read_tags;
  std::uint32_t clock = 0;       // highest interval of a warp
  std::uint32_t first_clock = 0; // before the intervals of this block's warps
  std::uint32_t old_tag = 0;     // of first_clock: ordered before all of the block; lower tags are of earlier blocks
  std::vector<Warp> warps, spare;
  BarrierState barriers[16];
  // Tags of global memory: first of the launch, this block's, and one for "several blocks"; see fences.hpp.
  std::uint32_t first_tag = 0, tag = 0, many_tag = 0;
  std::uint32_t number = 0; // in the order of the grid
  bool tag_used = false;
  FenceLog* fences = nullptr;
  std::uint64_t acquired = 0;              // number of the block's last fence; 0: none
  SectorSet read_sectors, written_sectors; // with Launch::profile, of all blocks that this thread runs
  std::byte* shared_at(std::uint32_t offset) { return reinterpret_cast<std::byte*>(shared.data()) + offset; }
};

[[noreturn]] void fail(const Warp& warp, const Instruction& instruction, int lane, ErrorKind kind,
                       const std::string& what);

// Lanes of an instruction's results that it is run for.
template <class Word>
inline void store_lanes(Word* to, const Word* from, std::uint32_t lanes) {
  if (lanes == kAllLanes) {
    std::memcpy(to, from, kLanes * sizeof(Word));
    return;
  }
  for (int l = 0; l < kLanes; ++l) to[l] = lanes >> l & 1 ? from[l] : to[l];
}

} // namespace triax::gpu_stand_in
