// SPDX-License-Identifier: Apache-2.0
// Where a rank keeps state outside of its memory: a range of bytes, such as a file. The program that owns the files
// implements it, so that the executor has no I/O.
//
// Threads: any; calls for different bytes may overlap. Blocking: reads and writes. Errors: Error with the file and the
// offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace triax::executor {

class StateStorage {
 public:
  virtual ~StateStorage() = default;
  /// Fills `to` with the bytes from `offset` on. Bytes that were never written are 0.
  virtual void read(std::uint64_t offset, std::span<std::byte> to) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> from) = 0;
};

} // namespace triax::executor
