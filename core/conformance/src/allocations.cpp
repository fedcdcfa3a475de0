// SPDX-License-Identifier: Apache-2.0
// Every form that allocates single objects is replaced: a sanitizer has its own version of each form, and memory of one
// version must not be released by another. The array forms call these.
#include "triax/conformance/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace triax::conformance {

namespace {

thread_local std::size_t calls = 0;
std::atomic<std::size_t> all_calls = 0;

constexpr std::size_t kAnyAlignment = alignof(std::max_align_t);

/// Returns null if there is no memory.
void* counted_memory(std::size_t bytes, std::size_t alignment) noexcept {
  ++calls;
  all_calls.fetch_add(1, std::memory_order_relaxed);
  const std::size_t blocks = bytes == 0 ? 1 : (bytes + alignment - 1) / alignment;
  return std::aligned_alloc(alignment, blocks * alignment);
}

void* counted_or_thrown(std::size_t bytes, std::size_t alignment) {
  void* const memory = counted_memory(bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

} // namespace

std::size_t allocations() noexcept {
  return calls;
}

std::size_t allocations_of_all_threads() noexcept {
  return all_calls.load(std::memory_order_relaxed);
}

} // namespace triax::conformance

// With inlining under a sanitizer, gcc takes free() for a mismatch with another operator new.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

#define TRIAX_REPLACED __attribute__((visibility("default")))

TRIAX_REPLACED void* operator new(std::size_t bytes) {
  return triax::conformance::counted_or_thrown(bytes, triax::conformance::kAnyAlignment);
}
TRIAX_REPLACED void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return triax::conformance::counted_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
TRIAX_REPLACED void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return triax::conformance::counted_memory(bytes, triax::conformance::kAnyAlignment);
}
TRIAX_REPLACED void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return triax::conformance::counted_memory(bytes, static_cast<std::size_t>(alignment));
}
TRIAX_REPLACED void operator delete(void* memory) noexcept {
  std::free(memory);
}
TRIAX_REPLACED void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
TRIAX_REPLACED void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
TRIAX_REPLACED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
