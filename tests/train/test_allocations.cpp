// The steady state: from the third step on, the thread that walks the program calls no operator new. Its own program,
// since it counts every call.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "schedule/rows.hpp"
#include "train/tiny_run.hpp"

namespace {

thread_local std::size_t allocations = 0; // of this thread; tests read differences

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + (bytes ? 0 : alignment));
  if (!memory) throw std::bad_alloc();
  return memory;
}

} // namespace

// Inlined under a sanitizer, gcc takes the free() below for one of memory that another operator new gave.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
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

namespace triax {
namespace {

class Counter final : public executor::WalkObserver {
 public:
  void walk_begins(std::int64_t) override { before_ = allocations; }
  void walk_ends(std::int64_t) override { of_step.push_back(allocations - before_); }
  std::vector<std::size_t> of_step;

 private:
  std::size_t before_ = 0;
};

std::vector<std::size_t> steady(test::TinyRun& run, const char* row = nullptr) {
  Counter counter;
  counter.of_step.reserve(8);
  train::RankOptions options;
  options.observer = &counter;
  options.threads = 2;
  Schedule schedule;
  if (row) options.schedule = &(schedule = test::schedule_of({1, 1, 4}, {0}, {row}));
  test::TinyRank rank(run.config(), options);
  for (int step = 1; step <= 6; ++step) {
    rank->step();
    if (step == 4) rank->evaluate();
  }
  return {counter.of_step.begin() + 2, counter.of_step.end()};
}

const std::vector<std::size_t> kNone(4, 0);

TEST(SteadyState, TheHookCounts) {
  const std::size_t before = allocations;
  const auto one = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations - before, 2u) << *one;
}

TEST(SteadyState, AllocatesNothing) {
  for (const char* kernels : {"\"kernels-reference\"", "\"kernels-cpu\""})
    for (const char* optimizer : {"\"optim-adamw\"", "\"optim-sgd\""}) {
      test::TinyRun run;
      run.keys["kernels.plugin"] = kernels;
      run.keys["optimizer.plugin"] = optimizer;
      EXPECT_EQ(steady(run), kNone) << kernels << ", " << optimizer;
    }
}

TEST(SteadyState, AllocatesNothingWithSplitBackwards) {
  test::TinyRun run;
  EXPECT_EQ(steady(run, "0F0 0F1 0I0 0F2 0I1 0W0 0F3 0I2 0I3 0W1 0W2 0W3"), kNone);
}

} // namespace
} // namespace triax
