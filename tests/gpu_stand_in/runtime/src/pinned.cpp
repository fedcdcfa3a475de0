// SPDX-License-Identifier: Apache-2.0
#include "pinned.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "gpu_stand_in/runtime.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::size_t kPage = 4096;

template <class F>
void for_each_device(const F& f) {
  for (int n = 0; n < device_count(); ++n) {
    if (GpuDevice* found = find_device(n)) f(*found);
  }
}

// The last allocation that begins at or before the address.
const PinnedAllocation* last_before(const std::map<std::uint64_t, PinnedAllocation>& all, std::uint64_t address) {
  const auto after = all.upper_bound(address);
  return after == all.begin() ? nullptr : &std::prev(after)->second;
}

} // namespace

void* PinnedMemory::allocate(std::size_t bytes, int device) {
  install_host_access_handler(); // a process may allocate pinned memory before it uses a device
  const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
  void* at = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  mprotect(static_cast<std::byte*>(at) + pages, kPage, PROT_NONE);
  std::memset(at, 0xFF, bytes);
  std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const std::string name = "cudaHostAlloc " + std::to_string(++number_);
  live_[address] = {{address, bytes, name, true}, device, pages + kPage};
  for_each_device([&](GpuDevice& each) { each.memory().attach_host(at, bytes, name); });
  return at;
}

bool PinnedMemory::free(void* address) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(reinterpret_cast<std::uint64_t>(address));
  if (found == live_.end()) return false;
  for_each_device([&](GpuDevice& each) { each.memory().detach_host(address); });
  // The pages stay reserved: the address is not used again, and each later access to it is found.
  mmap(address, found->second.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  freed_[found->first] = std::move(found->second);
  live_.erase(found);
  return true;
}

std::optional<PinnedAllocation> PinnedMemory::find(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const PinnedAllocation* found = last_before(live_, at);
  if (!found || at - found->allocation.address >= found->allocation.bytes) return std::nullopt;
  return *found;
}

std::string PinnedMemory::describe(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  for (const auto* all : {&live_, &freed_}) {
    const PinnedAllocation* found = last_before(*all, at);
    if (!found || at - found->allocation.address >= found->mapped_bytes) continue;
    const Allocation& a = found->allocation;
    const std::string text = a.name + " (" + std::to_string(a.bytes) + " bytes of pinned memory)" +
                             (all == &freed_ ? ", which was freed" : "");
    const std::uint64_t offset = at - a.address;
    if (offset < a.bytes) return "byte " + std::to_string(offset) + " of " + text;
    return std::to_string(offset - a.bytes) + " bytes behind the end of " + text;
  }
  return {};
}

void PinnedMemory::attach_to(GpuDevice& device, const std::function<void()>& publish) {
  std::lock_guard lock(mutex_);
  for (const auto& [address, each] : live_) {
    device.memory().attach_host(std::bit_cast<void*>(address), each.allocation.bytes, each.allocation.name);
  }
  publish();
}

PinnedMemory& pinned_memory() {
  static PinnedMemory& pinned = *new PinnedMemory;
  return pinned;
}

} // namespace triax::gpu_stand_in
