// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923), over texts and numbers, for comparison of contents. Not cryptographic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triax {

class Digest {
 public:
  /// The length is included, so that adjacent texts are distinguished.
  void add(std::string_view text) noexcept {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add(static_cast<std::int64_t>(text.size()));
  }
  void add(std::int64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  }
  /// 16 hexadecimal digits.
  std::string text() const {
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash_ >> shift & 15];
    return out;
  }

 private:
  void add_byte(unsigned char value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3; }
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

} // namespace triax
