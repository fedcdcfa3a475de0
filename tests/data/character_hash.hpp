// SPDX-License-Identifier: Apache-2.0
// The hash of a list of characters in tests/data/reference/classes.json: FNV-1a of three bytes for each.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace triax::data {

class CharacterHash {
 public:
  void add(char32_t character) {
    for (const int shift : {0, 8, 16}) hash_ = (hash_ ^ (character >> shift & 0xFF)) * 0x100000001B3;
  }
  std::string text() const {
    std::array<char, 17> out{};
    std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(hash_));
    return out.data();
  }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325;
};

} // namespace triax::data
