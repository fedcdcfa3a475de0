// SPDX-License-Identifier: Apache-2.0
// Pinned host memory, which all devices may access.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "device.hpp"

namespace triax::gpu_stand_in {

struct PinnedAllocation {
  Allocation allocation;
  int device = 0; // that was current
  std::size_t mapped_bytes = 0;
};

// Thread-safe. A page without rights is behind each allocation, and a freed allocation loses its rights, so that an
// access of the host beyond it or after the free is a SIGSEGV.
class PinnedMemory {
 public:
  // Null if the host has no memory left. New bytes are 0xFF.
  void* allocate(std::size_t bytes, int device);
  // Returns false if no allocation begins at the address.
  bool free(void* address);
  std::optional<PinnedAllocation> find(const void* address) const;
  // Text if the address is in or just behind an allocation, or in one that was freed; empty otherwise.
  std::string describe(const void* address) const;

  // Makes all pinned memory accessible to a new device. `publish` makes the device known, so that none is missed.
  void attach_to(GpuDevice& device, const std::function<void()>& publish);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, PinnedAllocation> live_, freed_;
  std::uint64_t number_ = 0;
};

PinnedMemory& pinned_memory();

} // namespace triax::gpu_stand_in
