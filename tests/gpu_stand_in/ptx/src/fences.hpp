// SPDX-License-Identifier: Apache-2.0
// Fences of the blocks of a launch, which order their accesses to global memory. A block's accesses between two of its
// fences are of one period and have one tag.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace triax::gpu_stand_in {

// What the blocks of a launch share. When a block has used up its periods, accesses of the last one count as released.
struct FenceLog {
  FenceLog(std::uint32_t number_of_blocks, bool has_fences)
      : blocks(number_of_blocks),
        periods(has_fences ? periods_for(number_of_blocks) : 1),
        released(has_fences ? blocks * periods : 0) {}

  static std::uint32_t periods_for(std::uint32_t blocks) {
    constexpr std::uint32_t kMin = 16, kMax = 4096, kOfAllBlocks = 1u << 16, kTags = 1u << 30;
    return std::max(1u, std::min(std::clamp(kOfAllBlocks / blocks, kMin, kMax), kTags / blocks));
  }
  // How many pairs of tags the launch needs: for each period of each block, and for "several blocks".
  std::uint32_t tag_pairs() const { return blocks * periods + 1; }

  const std::uint32_t blocks, periods;
  std::atomic<std::uint64_t> last = 0;              // number of a fence
  std::vector<std::atomic<std::uint64_t>> released; // of periods: the number of the fence that ended it; 0: none yet
};

} // namespace triax::gpu_stand_in
