// SPDX-License-Identifier: Apache-2.0
// XXH3, 128 bits (xxHash, doc/xxhash_spec.md), of bytes that arrive in parts. Detects damage; not
// cryptographic.
//
// Threads: one per object. Ownership: owns its state. Blocking: never. Errors: none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace triax {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void add(std::span<const std::byte> bytes) noexcept;
  /// 32 hexadecimal digits, as `xxhsum -H2` prints them.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace triax
