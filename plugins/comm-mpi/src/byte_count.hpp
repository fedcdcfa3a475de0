// SPDX-License-Identifier: Apache-2.0
// The length of a message as MPI counts: in int. A message that is longer is one element of a datatype: blocks of a
// MiB, and the bytes that are left.
#pragma once

#include <cstddef>
#include <limits>

namespace triax::comm_mpi {

struct ByteCount {
  static constexpr std::size_t kBlock = std::size_t{1} << 20;
  int blocks = 0; // 0: an int counts the bytes
  int bytes = 0;  // after the blocks

  /// Up to 2 PiB.
  explicit constexpr ByteCount(std::size_t length) noexcept
      : blocks(static_cast<int>(fits(length) ? 0 : length / kBlock)),
        bytes(static_cast<int>(fits(length) ? length : length % kBlock)) {}

  static constexpr bool fits(std::size_t length) noexcept {
    return length <= static_cast<std::size_t>(std::numeric_limits<int>::max());
  }
};

} // namespace triax::comm_mpi
