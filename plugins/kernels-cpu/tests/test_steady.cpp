// The steady state: operations call operator new neither in the calling thread nor in those of the pool.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "sets.hpp"
#include "support/operation_cases.hpp"

namespace {

std::atomic<long> allocations{0};

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(size, 1)) != 0)
    throw std::bad_alloc();
  return memory;
}

} // namespace

// Inlined under a sanitizer, gcc takes the free() below for one of memory that another operator new gave.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace triax::cpu {
namespace {

/// Runs each case's calls twice more once it has run, and counts.
class Repeated {
 public:
  Repeated(CpuSet& set) : set_(set) {}
  long allocations_of(const triax::testing::OperationCase& one) {
    long counted = 0;
    triax::testing::OperationCase again = one;
    again.build = [&](const triax::testing::CaseViews& views, const triax::testing::UseCall& use) {
      one.build(views, use);
      one.build(views, triax::testing::UseCall([&](const OpCall& call) { counted += issue(call); }));
    };
    run_case(set_.set(), set_.device(), again, DType::f32);
    return counted;
  }

 private:
  long issue(const OpCall& call) {
    std::vector<std::byte> scratch(set_.set().scratch_bytes(call));
    const OpContext context{set_.stream(), scratch};
    set_.set().issue(call, context);
    const long before = allocations;
    for (int i = 0; i < 3; ++i) set_.set().issue(call, context);
    return allocations - before;
  }
  CpuSet& set_;
};

TEST(SteadyState, NoOperationAllocates) {
  CpuSet set(2);
  Repeated repeated(set);
  for (const auto& one : triax::testing::operation_cases(DType::f32)) {
    EXPECT_EQ(repeated.allocations_of(one), 0) << one.name;
  }
  const long before = allocations;
  EXPECT_NE(std::make_unique<int>(1), nullptr);
  EXPECT_GT(allocations, before); // the count works
}

} // namespace
} // namespace triax::cpu
