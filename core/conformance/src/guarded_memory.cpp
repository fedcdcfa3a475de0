// SPDX-License-Identifier: Apache-2.0
#include "guarded_memory.hpp"

#include <algorithm>

namespace triax::conformance {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};

} // namespace

GuardedMemory::GuardedMemory(std::size_t bytes)
    : memory_(make_host_device()->allocate(bytes + 2 * kGuardBytes, MemoryKind::host)),
      data_(static_cast<std::byte*>(memory_->data()) + kGuardBytes),
      bytes_(bytes) {
  std::fill_n(static_cast<std::byte*>(memory_->data()), bytes + 2 * kGuardBytes, kGuard);
  std::fill_n(data_, bytes, std::byte{0});
}

bool GuardedMemory::is_intact() const {
  const auto is_guard = [](std::byte value) { return value == kGuard; };
  return std::all_of(data_ - kGuardBytes, data_, is_guard) &&
         std::all_of(data_ + bytes_, data_ + bytes_ + kGuardBytes, is_guard);
}

} // namespace triax::conformance
