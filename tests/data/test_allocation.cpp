// Filling a microbatch and writing tokens: what they promise about memory. Its own program, since it counts every
// operator new.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include "data/dataset.hpp"
#include "data/megatron_files.hpp"
#include "data/prepare.hpp"

namespace {

std::atomic<long> allocations{0};
std::atomic<std::size_t> live{0}, peak{0};

void* allocate(std::size_t bytes) {
  allocations.fetch_add(1);
  void* block = std::malloc(bytes + alignof(std::max_align_t));
  if (!block) throw std::bad_alloc();
  *static_cast<std::size_t*>(block) = bytes;
  const std::size_t now = live.fetch_add(bytes) + bytes;
  if (now > peak) peak = now;
  return static_cast<char*>(block) + alignof(std::max_align_t);
}

void release(void* pointer) noexcept {
  if (!pointer) return;
  void* block = static_cast<char*>(pointer) - alignof(std::max_align_t);
  live.fetch_sub(*static_cast<std::size_t*>(block));
  std::free(block);
}

} // namespace

// Inlined under a sanitizer, gcc takes the free() below for one of memory that another operator new gave.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* pointer) noexcept {
  release(pointer);
}
void operator delete[](void* pointer) noexcept {
  release(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
  release(pointer);
}
void operator delete[](void* pointer, std::size_t) noexcept {
  release(pointer);
}

namespace triax::data {
namespace {

using namespace triax::test;

TEST(Allocation, AMicrobatchTakesNone) {
  const TempFolder folder;
  std::vector<std::uint16_t> stream(10000, 3);
  write_tokens(folder / "d", 8, stream);
  const Dataset dataset(folder / "d", 32, 257, 1);
  std::vector<std::int32_t> tokens(32 * 4), targets(32 * 4);
  const TensorView token_view(tokens.data(), DType::i32, {32, 4});
  const TensorView target_view(targets.data(), DType::i32, {32, 4});
  const long before = allocations;
  for (std::int64_t n = 0; n < 1000; n += 4) {
    const std::int64_t samples[] = {n, n + 1, n + 2, n + 3};
    dataset.microbatch(samples, token_view, target_view);
  }
  EXPECT_EQ(allocations - before, 0);
  { const std::vector<int> counted(3); } // the counter does count
  EXPECT_GT(allocations - before, 0);
}

std::size_t peak_of_preparing(const std::filesystem::path& folder, int repeats) {
  std::string text;
  for (int i = 0; i < repeats; ++i) text += "one short document\n%\n";
  write_file(folder / "text", text);
  text = std::string();
  PrepareRequest request;
  request.inputs = {folder / "text"};
  request.output = folder / "out";
  request.tokenizer = "byte";
  request.separator = "%";
  request.force = true;
  const std::size_t before = live;
  peak = before;
  const Prepared made = prepare(request, {});
  EXPECT_EQ(made.train.documents, repeats);
  return peak - before;
}

TEST(Allocation, PreparingTakesTheSameMemoryForAnyInput) {
  const TempFolder folder;
  const std::size_t little = peak_of_preparing(folder.path(), 20'000);
  const std::size_t much = peak_of_preparing(folder.path(), 200'000);
  EXPECT_LE(much, little + 1024);
  EXPECT_LT(much, std::size_t{2} << 20);
}

} // namespace
} // namespace triax::data
