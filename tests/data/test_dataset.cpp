// SPDX-License-Identifier: Apache-2.0
// The window of the token stream that each sample number selects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <set>

#include "data/dataset.hpp"
#include "data/megatron_files.hpp"
#include "data/permutation.hpp"
#include "support/error_of.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using ::testing::HasSubstr;
using namespace triax::test;

/// Token i of the stream is i, so a window shows its start.
class Numbered {
 public:
  explicit Numbered(std::int32_t tokens) : tokens_(tokens) {
    std::vector<std::int32_t> stream(static_cast<std::size_t>(tokens));
    std::iota(stream.begin(), stream.end(), 0);
    write_tokens(folder_ / "d", 4, stream);
  }
  Dataset dataset(std::int64_t sequence, std::uint64_t seed = 1) const {
    return {folder_ / "d", sequence, tokens_, seed};
  }

 private:
  TempFolder folder_;
  std::int32_t tokens_;
};

/// Sorted starts of the windows of an epoch.
std::vector<std::int64_t> starts(const Dataset& dataset, std::int64_t epoch) {
  std::vector<std::int64_t> out;
  const std::int64_t count = dataset.samples_per_epoch();
  for (std::int64_t n = epoch * count; n < (epoch + 1) * count; ++n) out.push_back(dataset.start_of(n));
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Dataset, EveryWindowOfAnEpochComesExactlyOnce) {
  for (const std::int32_t tokens : {9, 15, 16, 17, 40, 41, 47, 48, 49, 1000, 4096, 5000}) {
    const Numbered file(tokens);
    const Dataset dataset = file.dataset(8);
    ASSERT_GE(dataset.samples_per_epoch(), 1);
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      const auto sorted = starts(dataset, epoch);
      EXPECT_GE(sorted.front(), 0) << tokens;
      EXPECT_LE(sorted.back() + 9, tokens) << tokens;
      for (std::size_t i = 1; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], sorted[i - 1] + 8) << tokens;
    }
  }
}

TEST(Dataset, AnEpochLeavesOutLessThanTwoWindows) {
  for (std::int32_t tokens = 9; tokens < 200; ++tokens) {
    const Numbered file(tokens);
    EXPECT_LT(tokens - 8 * file.dataset(8).samples_per_epoch(), 16 + 1) << tokens;
  }
}

TEST(Dataset, EpochsCutTheStreamAtOtherPlacesAndInAnotherOrder) {
  const Numbered file(5000);
  const Dataset dataset = file.dataset(16);
  std::set<std::int64_t> shifts;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) shifts.insert(starts(dataset, epoch).front());
  EXPECT_GT(shifts.size(), 12u); // of 16 possible
  EXPECT_LT(*shifts.rbegin(), 16);

  const std::int64_t count = dataset.samples_per_epoch();
  int same = 0;
  for (std::int64_t n = 0; n < count; ++n) same += dataset.start_of(n) / 16 == dataset.start_of(n + count) / 16;
  EXPECT_LT(same, 10); // chance gives about one of 311
}

TEST(Dataset, TheOrderIsNotTheStreams) {
  const Numbered file(16 * 1002);
  const Dataset dataset = file.dataset(16);
  std::int64_t neighbours = 0;
  for (std::int64_t n = 1; n < 1000; ++n) neighbours += dataset.start_of(n) == dataset.start_of(n - 1) + 16;
  EXPECT_LT(neighbours, 10); // chance gives about one
}

TEST(Dataset, ASampleDependsOnSeedAndNumberAlone) {
  const Numbered file(3000);
  const Dataset a = file.dataset(8, 42);
  const Dataset b = file.dataset(8, 42);
  const Dataset other = file.dataset(8, 43);
  for (std::int64_t n = 999; n >= 0; n -= 7) a.start_of(n); // earlier calls must not matter
  int same = 0;
  for (std::int64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(a.start_of(n), b.start_of(n));
    same += a.start_of(n) == other.start_of(n);
  }
  EXPECT_LT(same, 20);
}

TEST(Dataset, TheOrderNeverChanges) {
  // The order must not depend on the build. A deliberate change of the sampler changes these numbers.
  const Numbered file(1000);
  const Dataset dataset = file.dataset(8, 7);
  std::vector<std::int64_t> first;
  for (std::int64_t n = 0; n < 6; ++n) first.push_back(dataset.start_of(n));
  EXPECT_THAT(first, ::testing::ElementsAre(915, 747, 235, 299, 99, 827));
}

TEST(Dataset, TargetsAreTheNextTokens) {
  const Numbered file(1000);
  const Dataset dataset = file.dataset(8);
  const std::vector<std::int64_t> samples = {5, 200, 3};
  std::vector<std::int32_t> tokens(24, -1), targets(24, -1);
  dataset.microbatch(samples, {tokens.data(), DType::i32, {8, 3}}, {targets.data(), DType::i32, {8, 3}});
  for (std::size_t sample = 0; sample < 3; ++sample) {
    for (std::size_t i = 0; i < 8; ++i) {
      const auto expected = static_cast<std::int32_t>(dataset.start_of(samples[sample]) + static_cast<std::int64_t>(i));
      EXPECT_EQ(tokens[i * 3 + sample], expected);
      EXPECT_EQ(targets[i * 3 + sample], expected + 1);
    }
  }
}

TEST(Dataset, FillsViewsThatArePartOfALargerTensor) {
  const Numbered file(100);
  const Dataset dataset = file.dataset(4);
  std::vector<std::int32_t> memory(2 * 4 * 3, -1);
  const TensorView whole(memory.data(), DType::i32, {2, 4, 3});
  const std::vector<std::int64_t> samples = {1, 2};
  dataset.microbatch(samples, whole.at(0).slice(1, 0, 2), whole.at(1).slice(1, 1, 3));
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(memory[row * 3] + 1, memory[12 + row * 3 + 1]);
    EXPECT_EQ(memory[row * 3 + 2], -1);
    EXPECT_EQ(memory[12 + row * 3], -1);
  }
}

TEST(Dataset, RefusesViewsOfAnotherShapeOrType) {
  const Numbered file(100);
  const Dataset dataset = file.dataset(4);
  std::vector<std::int64_t> memory(64);
  const std::vector<std::int64_t> one = {0};
  const TensorView good(memory.data(), DType::i32, {4, 1});
  EXPECT_THROW(dataset.microbatch(one, {memory.data(), DType::i64, {4, 1}}, good), Error);
  EXPECT_THROW(dataset.microbatch(one, good, {memory.data(), DType::i32, {1, 4}}), Error);
  const std::vector<std::int64_t> negative = {-1};
  EXPECT_THROW(dataset.microbatch(negative, good, good), Error);
}

std::string refusal_of(const std::filesystem::path& prefix, std::int64_t sequence, std::int64_t vocab) {
  try {
    Dataset dataset(prefix, sequence, vocab, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(Dataset, RefusesAnIdOutsideTheVocabularyNamingItAndItsPlace) {
  const TempFolder folder;
  write_tokens<std::uint16_t>(folder / "d", 8, {1, 2, 300, 4, 5});
  EXPECT_EQ(refusal_of(folder / "d", 2, 301), "(accepted)");
  EXPECT_EQ(refusal_of(folder / "d", 2, 300), (folder / "d.bin").string() +
                                                  ": token 2 has id 300, which is not in [0, 299] (model.vocab = 300)\n"
                                                  "  use the vocab of the tokenizer that made this file");
}

TEST(Dataset, AnIdThatCameIntoTheFileLaterIsAnError) {
  const TempFolder folder;
  std::vector<std::int32_t> stream(40, 7);
  write_tokens(folder / "d", 4, stream);
  const Dataset dataset(folder / "d", 8, 300, 0);
  std::vector<std::int32_t> tokens(8), targets(8);
  const auto fill = [&] {
    dataset.microbatch(std::vector<std::int64_t>{0}, {tokens.data(), DType::i32, {8, 1}},
                       {targets.data(), DType::i32, {8, 1}});
  };
  fill();
  for (const std::int32_t bad : {300, -1}) {
    stream[static_cast<std::size_t>(dataset.start_of(0)) + 8] = bad; // the last target
    write_tokens(folder / "d", 4, stream);
    EXPECT_EQ(error_of(fill),
              text("{}.bin: token {} has id {}, which is not in [0, 299] (model.vocab = 300); the file was changed "
                   "after the run had checked it\n  do not replace the files of data.path while a run reads them",
                   (folder / "d").string(), dataset.start_of(0) + 8, bad));
  }
}

TEST(Dataset, RefusesAStreamShorterThanASample) {
  const TempFolder folder;
  write_tokens<std::uint16_t>(folder / "d", 8, {1, 2, 3, 4, 5});
  EXPECT_EQ(refusal_of(folder / "d", 4, 10), "(accepted)");
  EXPECT_THAT(refusal_of(folder / "d", 5, 10),
              HasSubstr("d.bin: holds 5 tokens; one sample of model.sequence = 5 takes 6"));
}

TEST(Permutation, IsOneForEverySize) {
  const PhiloxKey key = philox_key(9, RandomPurpose::test);
  for (std::uint64_t size = 1; size < 300; ++size) {
    std::set<std::uint64_t> seen;
    const Permutation order(size, key, size);
    for (std::uint64_t i = 0; i < size; ++i) seen.insert(order(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST(Permutation, PutsEveryElementEverywhereAboutEquallyOften) {
  const PhiloxKey key = philox_key(9, RandomPurpose::test);
  constexpr std::uint64_t kSize = 5; // a network of two-bit halves would show its bias most clearly here
  constexpr int kDraws = 20000;
  int counts[kSize][kSize] = {};
  for (int draw = 0; draw < kDraws; ++draw) {
    const Permutation order(kSize, key, static_cast<std::uint64_t>(draw));
    for (std::uint64_t i = 0; i < kSize; ++i) ++counts[i][order(i)];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, kDraws / 5, 300); // five standard deviations are 283
  }
}

TEST(Permutation, WorksAtItsLargestSize) {
  const Permutation order(std::uint64_t{1} << 62, philox_key(1, RandomPurpose::test), 0);
  EXPECT_LT(order(0), std::uint64_t{1} << 62);
  EXPECT_NE(order(0), order(1));
}

TEST(RandomBelow, StaysBelowAndReachesEverything) {
  const PhiloxKey key = philox_key(3, RandomPurpose::test);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 500; ++i) seen.insert(random_below(10, key, i));
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.rbegin(), 9u);
  EXPECT_EQ(random_below(1, key, 5), 0u);
}

} // namespace
} // namespace triax::data
