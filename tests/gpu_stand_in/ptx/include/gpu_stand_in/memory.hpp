// SPDX-License-Identifier: Apache-2.0
// Memory of one device of the GPU stand-in: allocations, and which bytes of them were written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>

namespace triax::gpu_stand_in {

struct Allocation {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  std::string name; // of the call that made it, for messages
  bool host = false;
  std::uint32_t* host_tags = nullptr; // of host memory: write tags, then as many read tags
};

// An allocation as kernels access it.
struct MemoryRange {
  std::uint64_t begin = 0, bytes = 0;
  std::byte* data = nullptr;
  std::uint8_t* written = nullptr; // null for host memory: what the host wrote is not known
  std::uint32_t* write_tags = nullptr;
  std::uint32_t* read_tags = nullptr;
};

// Thread-safe. Device addresses are mapped without rights, so that an access by the host is a SIGSEGV whose address
// owns() recognizes; the runtime and kernels use the alias. Addresses are not used again until 64 MiB and twice
// the used bytes of addresses were given out, so that an access after unmap() has that in its message.
class DeviceMemory {
 public:
  // Throws std::system_error if the address range cannot be reserved.
  explicit DeviceMemory(std::size_t capacity_bytes, std::string name = "GPU 0");
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns the address (a multiple of 512), or nullopt when the capacity is used up. No byte counts as written.
  std::optional<std::uint64_t> map(std::size_t bytes, std::string name);
  // Returns false if no allocation begins at the address.
  bool unmap(std::uint64_t address);

  // Pinned host memory, which kernels may access at its own address. The bytes all count as written. Hazards are found
  // between blocks of this device only.
  void attach_host(void* pointer, std::size_t bytes, std::string name);
  bool detach_host(void* pointer);

  // The range is device memory's (allocated or not).
  bool owns(std::uint64_t address) const { return address - base_ < arena_bytes_; }
  // The allocation that holds the address, or nullopt.
  std::optional<Allocation> find(std::uint64_t address) const;
  // The same, as kernels access it. `bytes` is 0 if no allocation holds the address.
  MemoryRange find_range(std::uint64_t address) const;
  // "1024 bytes behind the end of allocation ...", "in allocation ..., which was freed", "in no allocation".
  std::string describe(std::uint64_t address) const;
  bool contains(std::uint64_t address, std::size_t bytes) const;

  // Where the host reads and writes a device address. Not checked.
  std::byte* alias(std::uint64_t address) const { return alias_ + (address - base_); }
  // One byte for each byte of memory: 0 = not written since map().
  std::uint8_t* written(std::uint64_t address) const { return written_ + (address - base_); }
  void mark_written(std::uint64_t address, std::size_t bytes);
  // First byte of the range that was not written, or nullopt.
  std::optional<std::uint64_t> first_unwritten(std::uint64_t address, std::size_t bytes) const;

  // Tags of the accesses of blocks, one for each two bytes (see src/global_checks.hpp).
  std::uint32_t* write_tags(std::uint64_t address) const { return write_tags_ + (address - base_) / 2; }
  std::uint32_t* read_tags(std::uint64_t address) const { return read_tags_ + (address - base_) / 2; }
  // First of 2 * `pairs` tags that no launch on this device used before. It is even.
  std::uint32_t new_tags(std::uint32_t pairs);

  // Changes with each unmap(), and is that of no other memory, also not of one that was destroyed: ranges that were
  // looked up before are not valid any more.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return used_; }
  const std::string& name() const { return name_; }

 private:
  static std::uint64_t new_generation();
  void reserve();
  std::uint64_t place(std::size_t span);

  std::string name_;
  std::size_t capacity_;
  std::size_t arena_bytes_;
  std::atomic<std::size_t> used_ = 0;
  std::uint64_t base_ = 0;
  std::byte* alias_ = nullptr;
  std::uint8_t* written_ = nullptr;
  std::uint32_t* write_tags_ = nullptr;
  std::uint32_t* read_tags_ = nullptr;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> live_;
  std::map<std::uint64_t, Allocation> freed_;
  std::uint64_t next_;
  static constexpr std::uint64_t kFirstTag = 2; // 0: no access
  std::uint64_t next_tag_ = kFirstTag;
  std::atomic<std::uint64_t> generation_ = new_generation();
};

} // namespace triax::gpu_stand_in
