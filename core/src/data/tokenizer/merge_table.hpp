// SPDX-License-Identifier: Apache-2.0
// Byte-pair merges: looks up the result and rank of a pair, and merges the tokens of a word.
//
// Threads: a MergeTable is read-only and may be shared; a Merger belongs to one thread. Memory: that of a merger grows
// with the longest word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace triax::data {

struct Merge {
  std::int32_t left = 0, right = 0;
  std::int32_t result = 0;
};

class MergeTable {
 public:
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  struct Found {
    std::uint32_t rank = kNever; // the pair with the smallest rank is merged first
    std::int32_t result = 0;
  };

  /// In the order of their ranks; of equal pairs, the last one is used.
  explicit MergeTable(std::span<const Merge> merges);
  Found find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.found;
      if (slot.key == kEmpty) return {};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = std::numeric_limits<std::uint64_t>::max(); // ids are not negative
  struct Slot {
    std::uint64_t key = kEmpty;
    Found found;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15) >> shift_);
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  unsigned shift_ = 63;
};

class Merger {
 public:
  explicit Merger(const MergeTable& table) : table_(&table) {}
  /// Repeatedly merges the pair with the smallest rank, the leftmost first, until no pair can be merged. Changes `ids`.
  void merge(std::vector<std::int32_t>& ids);

 private:
  void merge_short(std::vector<std::int32_t>& ids);
  void merge_long(std::vector<std::int32_t>& ids);

  struct Candidate {
    std::uint32_t rank;
    std::uint32_t at;
    std::int32_t result;
  };
  struct Link {
    std::uint32_t previous, next;
  };
  const MergeTable* table_;
  std::vector<MergeTable::Found> pairs_; // for each id and its right neighbour
  std::vector<Candidate> heap_;
  std::vector<Link> links_;
};

} // namespace triax::data
