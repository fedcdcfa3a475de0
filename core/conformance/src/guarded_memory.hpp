// SPDX-License-Identifier: Apache-2.0
// Memory of the host between two guards, which nothing may write.
#pragma once

#include <cstddef>
#include <memory>

#include "triax/device.hpp"

namespace triax::conformance {

class GuardedMemory {
 public:
  /// Zeros, aligned to 256 bytes.
  explicit GuardedMemory(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool is_intact() const;

 private:
  std::unique_ptr<Memory> memory_;
  std::byte* data_;
  std::size_t bytes_;
};

} // namespace triax::conformance
