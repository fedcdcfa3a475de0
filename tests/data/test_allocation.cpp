// SPDX-License-Identifier: Apache-2.0
// Memory use: filling a microbatch does not allocate, and preparing data has a bounded peak. A separate program,
// because it counts every operator new.
#include <gtest/gtest.h>

#include <numeric>

#include "data/dataset.hpp"
#include "data/megatron_files.hpp"
#include "data/prepare.hpp"
#include "support/count_allocations.hpp"

namespace triax::data {
namespace {

using namespace triax::test;
using namespace triax::test;

TEST(Allocation, AMicrobatchTakesNone) {
  const TempFolder folder;
  std::vector<std::uint16_t> stream(10000, 3);
  write_tokens(folder / "d", 8, stream);
  const Dataset dataset(folder / "d", 32, 257, 1);
  std::vector<std::int32_t> tokens(32 * 4), targets(32 * 4);
  const TensorView token_view(tokens.data(), DType::i32, {32, 4});
  const TensorView target_view(targets.data(), DType::i32, {32, 4});
  const std::size_t before = allocations();
  for (std::int64_t n = 0; n < 1000; n += 4) {
    const std::int64_t samples[] = {n, n + 1, n + 2, n + 3};
    dataset.microbatch(samples, token_view, target_view);
  }
  EXPECT_EQ(allocations() - before, 0u);
  { const std::vector<int> counted(3); } // the counter works
  EXPECT_GT(allocations() - before, 0u);
}

std::size_t peak_of_preparing(const std::filesystem::path& folder, int repeats) {
  std::string text;
  for (int i = 0; i < repeats; ++i) text += "one short document\n%\n";
  write_file(folder / "text", text);
  text = std::string();
  PrepareRequest request;
  request.inputs = {folder / "text"};
  request.output = folder / "out";
  request.tokenizer.name = "byte";
  request.separator = "%";
  request.force = true;
  restart_peak();
  const std::size_t before = live_bytes();
  const Prepared made = prepare(request, {});
  EXPECT_EQ(made.train.documents, repeats);
  return peak_bytes() - before;
}

TEST(Allocation, PreparingTakesTheSameMemoryForAnyInput) {
  const TempFolder folder;
  const std::size_t little = peak_of_preparing(folder.path(), 20'000);
  const std::size_t much = peak_of_preparing(folder.path(), 200'000);
  EXPECT_LE(much, little + 1024);
  EXPECT_LT(much, std::size_t{4} << 20); // four file buffers and three jobs
}

/// One document with words, and runs of blanks that are long words.
std::size_t peak_of_one_document(const std::filesystem::path& folder, int repeats) {
  std::string text;
  for (int i = 0; i < repeats; ++i) {
    text += "All human beings are born free and equal, it's said; 123 times.\n";
    if (i % 2000 == 0) text += std::string(150'000, ' ');
  }
  write_file(folder / "text", text);
  text = std::string();
  PrepareRequest request;
  request.inputs = {folder / "text"};
  request.output = folder / "out";
  request.tokenizer.name = TRIAX_SOURCE_DIR "/tests/data/reference/trained.json";
  request.force = true;
  restart_peak();
  const std::size_t before = live_bytes();
  EXPECT_EQ(prepare(request, {}).train.documents, 1);
  return peak_bytes() - before;
}

TEST(Allocation, ALongDocumentTakesNoMoreMemoryThanAShortOne) {
  const TempFolder folder;
  const std::size_t little = peak_of_one_document(folder.path(), 6'000);
  const std::size_t much = peak_of_one_document(folder.path(), 60'000);
  EXPECT_LE(much, little + (std::size_t{1} << 20)); // long words may be in one job or in two
}

} // namespace
} // namespace triax::data
