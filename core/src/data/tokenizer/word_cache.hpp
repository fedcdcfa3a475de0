// SPDX-License-Identifier: Apache-2.0
// Cache of the tokens of recent words: a table of fixed size, in which a word replaces the previous word of its slot.
//
// Memory: constant; only short words with few tokens are stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace triax::data {

class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  /// Null if the word is not cached. Valid until the next put().
  const std::int32_t* find(std::string_view word, std::size_t& count) const {
    if (word.size() > kMax) return nullptr;
    const Slot& slot = slots_[slot_of(word)];
    if (slot.length != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) return nullptr;
    count = slot.count;
    return slot.ids.data();
  }

  void put(std::string_view word, std::span<const std::int32_t> ids) {
    if (word.empty() || word.size() > kMax || ids.size() > kMaxIds) return;
    Slot& slot = slots_[slot_of(word)];
    slot.length = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(ids.size());
    std::ranges::copy(word, slot.word.begin());
    std::ranges::copy(ids, slot.ids.begin());
  }

 private:
  static constexpr std::size_t kSlots = 1 << 15, kMax = 30, kMaxIds = 8;
  struct alignas(64) Slot {
    std::uint8_t length = 0, count = 0;
    std::array<char, kMax> word{};
    std::array<std::int32_t, kMaxIds> ids{};
  };
  static_assert(sizeof(Slot) == 64, "one line of a processor's cache");

  static std::size_t slot_of(std::string_view word) {
    std::uint64_t hash = word.size();
    for (std::size_t at = 0; at < word.size(); at += 8) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, word.data() + at, std::min<std::size_t>(8, word.size() - at));
      hash = (hash ^ bytes) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    }
    return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15) >> 49);
  }

  std::vector<Slot> slots_;
};

} // namespace triax::data
