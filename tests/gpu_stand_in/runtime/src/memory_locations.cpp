// SPDX-License-Identifier: Apache-2.0
// What an address is: device memory, pinned memory, or pageable memory.
#include <cstring>

#include "gpu_stand_in/runtime.hpp"
#include "pinned.hpp"

namespace triax::gpu_stand_in {

namespace {

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

[[noreturn]] void fail_access(int device, const void* address, std::size_t bytes, std::string_view what) {
  throw StreamError(cudaErrorIllegalAddress, std::string(what) + ": " + std::to_string(bytes) + " bytes at " +
                                                 describe_memory(address) + " are not in one allocation of GPU " +
                                                 std::to_string(device) + " or of pinned memory");
}

// Where the host reads and writes the range.
std::byte* data_of(int device, const void* address, std::size_t bytes, std::string_view what) {
  const auto found = find_memory(address);
  if (!found || (!found->allocation.host && found->device != device) ||
      bytes > found->allocation.bytes - (number(address) - found->allocation.address)) {
    fail_access(device, address, bytes, what);
  }
  return found->data;
}

} // namespace

std::optional<MemoryLocation> find_memory(const void* address) {
  if (GpuDevice* owner = owner_of(address)) {
    DeviceMemory& memory = owner->memory();
    auto found = memory.find(number(address));
    if (!found) return std::nullopt;
    return MemoryLocation{owner->number(), std::move(*found), memory.alias(number(address))};
  }
  auto pinned = pinned_memory().find(address);
  if (!pinned) return std::nullopt;
  auto* data = static_cast<std::byte*>(const_cast<void*>(address));
  return MemoryLocation{pinned->device, std::move(pinned->allocation), data};
}

std::string describe_memory(const void* address) {
  if (GpuDevice* owner = owner_of(address)) {
    return owner->memory().describe(number(address)) + " of " + owner->memory().name();
  }
  const std::string pinned = pinned_memory().describe(address);
  if (!pinned.empty()) return pinned;
  return address ? "pageable host memory" : "the null pointer";
}

const std::byte* data_to_read(int device, const void* address, std::size_t bytes, std::string_view what) {
  const std::byte* data = data_of(device, address, bytes, what);
  if (GpuDevice* owner = owner_of(address)) {
    const DeviceMemory& memory = owner->memory();
    if (const auto unwritten = memory.first_unwritten(number(address), bytes)) {
      throw StreamError(cudaErrorIllegalAddress,
                        std::string(what) + ": reads " + memory.describe(*unwritten) + ", which was never written");
    }
  }
  return data;
}

std::byte* data_to_write(int device, void* address, std::size_t bytes, std::string_view what) {
  std::byte* data = data_of(device, address, bytes, what);
  if (GpuDevice* owner = owner_of(address)) owner->memory().mark_written(number(address), bytes);
  return data;
}

} // namespace triax::gpu_stand_in
