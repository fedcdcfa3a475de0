// SPDX-License-Identifier: Apache-2.0
#include "support/count_allocations.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t calls = 0;
std::atomic<std::size_t> all_calls{0}, live{0}, peak{0};

/// Returns null if there is no memory.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  ++calls;
  ++all_calls;
  const std::size_t blocks = bytes == 0 ? 1 : (bytes + alignment - 1) / alignment;
  void* memory = std::aligned_alloc(alignment, blocks * alignment);
  if (!memory) return nullptr;
  const std::size_t size = malloc_usable_size(memory);
  const std::size_t now = live.fetch_add(size) + size;
  for (std::size_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void* existing(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  live.fetch_sub(malloc_usable_size(memory)); // 0 for null
  std::free(memory);
}

} // namespace

namespace triax::test {

std::size_t allocations() noexcept {
  return calls;
}
std::size_t allocations_of_all_threads() noexcept {
  return all_calls;
}
std::size_t live_bytes() noexcept {
  return live;
}
std::size_t peak_bytes() noexcept {
  return peak;
}
void restart_peak() noexcept {
  peak = live.load();
}

} // namespace triax::test

// With inlining under a sanitizer, gcc takes free() for a mismatch with another operator new.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

constexpr std::size_t kAnyObject = alignof(std::max_align_t);

// Every form that allocates single objects. A sanitizer has its own version of each form, which would not call these,
// and memory of one version must not be released by another. The array forms call these; under a sanitizer they are
// separate, but in matching pairs.
void* operator new(std::size_t bytes) {
  return existing(allocate(bytes, kAnyObject));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return existing(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAnyObject);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
