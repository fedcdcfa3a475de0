// SPDX-License-Identifier: Apache-2.0
// Random changes of the bytes of a valid file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

namespace triax::test {

/// Changes some bytes, the length, or a whole field to a value that is likely to cause errors.
inline void change(std::string& bytes, std::mt19937_64& random) {
  const auto below = [&random](std::size_t size) { return static_cast<std::size_t>(random() % size); };
  constexpr std::uint64_t kTrouble[] = {
      0,          1,    2, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ull << 60, 1ull << 61, 0x7FFFFFFFFFFFFFFF,
      1ull << 63, ~0ull};
  switch (below(5)) {
    case 0: // one byte
      if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(random());
      break;
    case 1: // one bit
      if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<char>(1u << below(8));
      break;
    case 2: { // a number of 1, 2, 4 or 8 bytes
      const std::size_t width = std::size_t{1} << below(4);
      if (bytes.size() < width) break;
      const std::uint64_t value = kTrouble[below(std::size(kTrouble))];
      std::memcpy(bytes.data() + below(bytes.size() - width + 1), &value, width);
      break;
    }
    case 3:
      bytes.resize(below(bytes.size() + 1));
      break;
    default:
      bytes.append(below(20), static_cast<char>(random()));
  }
}

/// Up to three changes.
inline void change_some(std::string& bytes, std::mt19937_64& random) {
  for (std::uint64_t left = 1 + random() % 3; left > 0; --left) change(bytes, random);
}

/// Changes of a JSON text that mostly leave it JSON: a number, a text or a value becomes another, a part occurs twice.
inline void change_json(std::string& json, std::mt19937_64& random) {
  const auto below = [&random](std::size_t size) { return static_cast<std::size_t>(random() % size); };
  constexpr const char* kValues[] = {"0",  "-1",   "1.5", "1e999", "9223372036854775807", "18446744073709551615",
                                     "[]", "null", "{}",  "\"\"",  "1152921504606846976", "4294967296"};
  for (std::size_t left = 1 + below(3); left > 0 && !json.empty(); --left) {
    const std::size_t at = below(json.size());
    const std::size_t begin = json.find_first_of("0123456789\"[", at);
    if (begin == std::string::npos) continue;
    const std::size_t end = json.find_first_of(",]}:\n", begin + 1);
    if (end == std::string::npos) continue;
    switch (below(3)) {
      case 0:
        json.replace(begin, end - begin, kValues[below(std::size(kValues))]);
        break;
      case 1: // a digit
        if (json[begin] != '"' && json[begin] != '[') json[begin] = static_cast<char>('0' + below(10));
        break;
      default: { // from one comma to another
        const std::size_t next = json.find(',', end + 1);
        if (json[end] == ',' && next != std::string::npos) json.insert(end, json.substr(end, next - end));
      }
    }
  }
}

} // namespace triax::test
