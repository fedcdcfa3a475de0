// SPDX-License-Identifier: Apache-2.0
// Device memory: one file mapped twice (device addresses without rights, the alias with), and shadows of it.
#include "gpu_stand_in/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <system_error>

namespace triax::gpu_stand_in {

namespace {

constexpr std::size_t kAlign = 512;
constexpr std::size_t kGap = 512; // belongs to no allocation
constexpr std::size_t kPage = 4096;
constexpr std::size_t kReleaseBytes = std::size_t{64} << 20; // of device memory that is given back when it is freed
constexpr std::size_t kClearBytes = std::size_t{1} << 20;    // smaller shadows are set, larger ones given back
// Bytes of addresses that are allocated before an address is reused.
constexpr std::size_t kUnusedBytes = std::size_t{64} << 20;

void* map_or_throw(std::size_t bytes, int rights, int flags, int file) {
  void* at = mmap(nullptr, bytes, rights, flags | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot reserve device memory");
  return at;
}

// Sets anonymous memory to zero.
void clear(std::uint8_t* at, std::size_t bytes) {
  if (bytes < kClearBytes) {
    std::memset(at, 0, bytes);
    return;
  }
  auto begin = (reinterpret_cast<std::uintptr_t>(at) + kPage - 1) / kPage * kPage;
  auto end = (reinterpret_cast<std::uintptr_t>(at) + bytes) / kPage * kPage;
  std::memset(at, 0, begin - reinterpret_cast<std::uintptr_t>(at));
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(end), 0, reinterpret_cast<std::uintptr_t>(at) + bytes - end);
}

// Of host memory: write tags, then as many read tags.
std::size_t count_of_tags(std::size_t bytes) {
  return bytes / 2 + 1;
}
std::size_t bytes_of_host_tags(std::size_t bytes) {
  return 2 * sizeof(std::uint32_t) * count_of_tags(bytes);
}

} // namespace

DeviceMemory::DeviceMemory(std::size_t capacity_bytes, std::string name)
    : name_(std::move(name)),
      capacity_(capacity_bytes),
      arena_bytes_((4 * capacity_bytes + (1u << 24)) / kPage * kPage) {
  reserve();
  next_ = base_ + kAlign;
}

std::uint64_t DeviceMemory::new_generation() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

void DeviceMemory::reserve() {
  const int file = memfd_create("gpu_stand_in", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(arena_bytes_)) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot reserve device memory");
  }
  base_ = reinterpret_cast<std::uint64_t>(map_or_throw(arena_bytes_, PROT_NONE, MAP_SHARED, file));
  alias_ = static_cast<std::byte*>(map_or_throw(arena_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file));
  close(file);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto shadow = [&](std::size_t bytes) { return map_or_throw(bytes, PROT_READ | PROT_WRITE, flags, -1); };
  written_ = static_cast<std::uint8_t*>(shadow(arena_bytes_));
  write_tags_ = static_cast<std::uint32_t*>(shadow(2 * arena_bytes_));
  read_tags_ = static_cast<std::uint32_t*>(shadow(2 * arena_bytes_));
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, each] : live_) {
    if (each.host) munmap(each.host_tags, bytes_of_host_tags(each.bytes));
  }
  munmap(reinterpret_cast<void*>(base_), arena_bytes_);
  munmap(alias_, arena_bytes_);
  munmap(written_, arena_bytes_);
  munmap(write_tags_, 2 * arena_bytes_);
  munmap(read_tags_, 2 * arena_bytes_);
}

// Address of a free span; 0 if there is none.
std::uint64_t DeviceMemory::place(std::size_t span) {
  // Pages that were used before cost no page faults.
  if (next_ - base_ > kUnusedBytes + 2 * used_) next_ = base_ + kAlign;
  for (int pass = 0; pass < 2; ++pass) {
    auto after = live_.lower_bound(next_);
    if (after != live_.begin()) {
      const Allocation& before = std::prev(after)->second;
      next_ = std::max(next_, (before.address + before.bytes + kGap + kAlign - 1) / kAlign * kAlign);
    }
    for (; after != live_.end() && after->first < next_ + span; ++after) {
      next_ = (after->first + after->second.bytes + kGap + kAlign - 1) / kAlign * kAlign;
    }
    if (next_ + span <= base_ + arena_bytes_) return next_;
    next_ = base_ + kAlign;
  }
  return 0;
}

std::optional<std::uint64_t> DeviceMemory::map(std::size_t bytes, std::string name) {
  std::unique_lock lock(mutex_);
  if (bytes == 0 || bytes > capacity_ - used_) return std::nullopt;
  const std::size_t span = (bytes + kGap + kAlign - 1) / kAlign * kAlign;
  const std::uint64_t at = place(span);
  if (at == 0) return std::nullopt;
  next_ = at + span;
  freed_.erase(freed_.lower_bound(at), freed_.lower_bound(at + span));
  live_[at] = {at, bytes, std::move(name), false};
  used_ += bytes;
  clear(written(at), bytes);
  return at;
}

bool DeviceMemory::unmap(std::uint64_t address) {
  std::unique_lock lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end() || found->second.host) return false;
  const std::size_t bytes = found->second.bytes;
  used_ -= bytes;
  if (bytes >= kReleaseBytes) {
    const std::uint64_t begin = (address + kPage - 1) / kPage * kPage, end = (address + bytes) / kPage * kPage;
    madvise(alias(begin), end - begin, MADV_REMOVE);
    clear(reinterpret_cast<std::uint8_t*>(write_tags(address)), 2 * bytes);
    clear(reinterpret_cast<std::uint8_t*>(read_tags(address)), 2 * bytes);
  }
  freed_[address] = std::move(found->second);
  live_.erase(found);
  generation_.store(new_generation(), std::memory_order_release);
  return true;
}

void DeviceMemory::attach_host(void* pointer, std::size_t bytes, std::string name) {
  std::unique_lock lock(mutex_);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  void* tags = map_or_throw(bytes_of_host_tags(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  live_[address] = {address, bytes, std::move(name), true, static_cast<std::uint32_t*>(tags)};
}

bool DeviceMemory::detach_host(void* pointer) {
  std::unique_lock lock(mutex_);
  const auto found = live_.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == live_.end() || !found->second.host) return false;
  munmap(found->second.host_tags, bytes_of_host_tags(found->second.bytes));
  live_.erase(found);
  generation_.store(new_generation(), std::memory_order_release);
  return true;
}

MemoryRange DeviceMemory::find_range(std::uint64_t address) const {
  const auto found = find(address);
  if (!found) return {};
  const std::uint64_t at = found->address;
  if (found->host) {
    std::uint32_t* tags = found->host_tags;
    return {at, found->bytes, reinterpret_cast<std::byte*>(at), nullptr, tags, tags + count_of_tags(found->bytes)};
  }
  return {at, found->bytes, alias(at), written(at), write_tags(at), read_tags(at)};
}

std::optional<Allocation> DeviceMemory::find(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto at = live_.upper_bound(address);
  if (at == live_.begin() || address - (--at)->first >= at->second.bytes) return std::nullopt;
  return at->second;
}

bool DeviceMemory::contains(std::uint64_t address, std::size_t bytes) const {
  const auto found = find(address);
  return found && bytes <= found->bytes - (address - found->address);
}

std::string DeviceMemory::describe(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto text = [](const Allocation& a) { return a.name + " (" + std::to_string(a.bytes) + " bytes)"; };
  auto live = live_.upper_bound(address);
  if (live != live_.begin()) {
    const Allocation& a = std::prev(live)->second;
    if (address - a.address < a.bytes) return "byte " + std::to_string(address - a.address) + " of " + text(a);
  }
  auto freed = freed_.upper_bound(address);
  if (freed != freed_.begin()) {
    const Allocation& a = std::prev(freed)->second;
    if (address - a.address < a.bytes)
      return "byte " + std::to_string(address - a.address) + " of " + text(a) + ", which was freed";
  }
  if (live != live_.begin()) {
    const Allocation& a = std::prev(live)->second;
    if (address - a.address - a.bytes < (1u << 20)) {
      return std::to_string(address - a.address - a.bytes) + " bytes behind the end of " + text(a);
    }
  }
  if (live != live_.end() && live->first - address < (1u << 20)) {
    return std::to_string(live->first - address) + " bytes before " + text(live->second);
  }
  return "in no allocation";
}

void DeviceMemory::mark_written(std::uint64_t address, std::size_t bytes) {
  std::memset(written(address), 1, bytes);
}

std::optional<std::uint64_t> DeviceMemory::first_unwritten(std::uint64_t address, std::size_t bytes) const {
  const void* at = std::memchr(written(address), 0, bytes);
  if (!at) return std::nullopt;
  return address + (static_cast<const std::uint8_t*>(at) - written(address));
}

std::uint32_t DeviceMemory::new_tags(std::uint32_t pairs) {
  std::unique_lock lock(mutex_);
  const std::uint64_t count = 2 * std::uint64_t{pairs};
  if (next_tag_ + count >= 0xFFFFFFFFu) {
    clear(reinterpret_cast<std::uint8_t*>(write_tags_), 2 * arena_bytes_);
    clear(reinterpret_cast<std::uint8_t*>(read_tags_), 2 * arena_bytes_);
    for (auto& [address, each] : live_) {
      if (each.host) clear(reinterpret_cast<std::uint8_t*>(each.host_tags), bytes_of_host_tags(each.bytes));
    }
    next_tag_ = kFirstTag;
  }
  const auto first = static_cast<std::uint32_t>(next_tag_);
  next_tag_ += count;
  return first;
}

} // namespace triax::gpu_stand_in
