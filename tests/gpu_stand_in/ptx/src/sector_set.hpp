// SPDX-License-Identifier: Apache-2.0
// A set of sectors of global memory, for Launch::profile.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

namespace triax::gpu_stand_in {

class SectorSet {
 public:
  void insert(std::uint64_t sector) {
    const std::uint64_t page = sector / kPageSectors, bit = sector % kPageSectors;
    if (!last_ || page != last_page_) {
      last_ = &pages_[page];
      last_page_ = page;
    }
    (*last_)[bit / kWordBits] |= std::uint64_t{1} << bit % kWordBits;
  }
  void insert(const SectorSet& other) {
    for (const auto& [page, words] : other.pages_) {
      Words& mine = pages_[page];
      for (std::size_t n = 0; n < mine.size(); ++n) mine[n] |= words[n];
    }
  }
  std::uint64_t size() const {
    std::uint64_t count = 0;
    for (const auto& [page, words] : pages_)
      for (const std::uint64_t word : words) count += static_cast<std::uint64_t>(std::popcount(word));
    return count;
  }
  void clear() {
    pages_.clear();
    last_ = nullptr;
  }

 private:
  static constexpr std::uint64_t kPageSectors = 2048, kWordBits = 64; // a page: 64 KiB
  using Words = std::array<std::uint64_t, kPageSectors / kWordBits>;

  std::unordered_map<std::uint64_t, Words> pages_; // addresses of its elements do not change
  Words* last_ = nullptr;
  std::uint64_t last_page_ = 0;
};

} // namespace triax::gpu_stand_in
