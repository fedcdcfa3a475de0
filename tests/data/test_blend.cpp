// SPDX-License-Identifier: Apache-2.0
// Blending of corpora: shares at every position of a run, without gaps or repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/blended_dataset.hpp"
#include "data/megatron_files.hpp"
#include "support/error_of.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace triax::test;
using triax::test::error_of;

const std::vector<std::vector<double>> kWeights = {
    {1}, {1, 1}, {0.7, 0.3}, {3, 1, 2}, {1, 1e-6}, {1e-9, 5, 1e9}, {2, 3, 5, 7, 11, 13, 17}, {0.1, 0.2, 0.3, 0.4}};

TEST(Blend, EverySampleOfEachCorpusComesOnceAndInOrder) {
  for (const auto& weights : kWeights) {
    const Blend blend(weights);
    std::vector<std::int64_t> next(weights.size());
    for (std::int64_t n = 0; n < 5000; ++n) {
      const Blend::Position position = blend.position_of(n);
      ASSERT_LT(position.corpus, weights.size());
      ASSERT_EQ(position.sample, next[position.corpus]++) << n;
    }
    for (std::size_t corpus = 0; corpus < weights.size(); ++corpus) EXPECT_EQ(blend.count(corpus, 5000), next[corpus]);
  }
}

TEST(Blend, InFullHasEachSampleOnce) {
  const std::vector<std::vector<std::int64_t>> all = {{7}, {1, 10}, {100, 900}, {3, 1, 1, 1, 500, 2, 77}};
  for (const std::vector<std::int64_t>& counts : all) {
    const Blend blend = Blend::in_full(counts);
    std::vector<std::int64_t> next(counts.size());
    const std::int64_t samples = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    for (std::int64_t n = 0; n < samples; ++n) {
      const Blend::Position position = blend.position_of(n);
      ASSERT_EQ(position.sample, next[position.corpus]++) << n;
    }
    EXPECT_EQ(next, counts);
  }
}

/// One corpus has nearly the whole share; its siblings round in the same direction at every halving.
TEST(Blend, SharesOfManyHoldToWithinHalfASampleForEachHalving) {
  for (const std::size_t corpora : {16, 64, 1024}) {
    std::vector<double> weights{1};
    for (std::size_t half = 1; half < corpora; half *= 2)
      weights.insert(weights.end(), half, 0.49 / 1000 / static_cast<double>(half));
    const Blend blend(weights);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double bound = std::log2(static_cast<double>(corpora)) / 2 + 1e-6;
    double farthest = 0;
    for (std::int64_t n = 1; n <= 20000; n += 7)
      farthest = std::max(farthest, std::abs(static_cast<double>(blend.count(0, n)) - static_cast<double>(n) / sum));
    EXPECT_LE(farthest, bound) << corpora;
    EXPECT_EQ(farthest > 2, corpora > 16) << farthest;
  }
}

TEST(Blend, SharesHoldToWithinTwoAtEveryPlace) {
  for (const auto& weights : kWeights) {
    const Blend blend(weights);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<std::int64_t> counts(weights.size());
    for (std::int64_t n = 1; n <= 5000; ++n) {
      ++counts[blend.position_of(n - 1).corpus];
      for (std::size_t i = 0; i < weights.size(); ++i)
        ASSERT_NEAR(static_cast<double>(counts[i]), static_cast<double>(n) * weights[i] / sum, 2) << n << ' ' << i;
    }
  }
}

TEST(Blend, IsExactFarIntoARun) {
  const Blend blend({0.7, 0.2, 0.1});
  const std::int64_t far = (std::int64_t{1} << 62) + 12345;
  for (std::int64_t n = far; n < far + 1000; ++n) {
    const Blend::Position position = blend.position_of(n);
    EXPECT_EQ(position.sample, blend.count(position.corpus, n));
    EXPECT_EQ(blend.count(0, n) + blend.count(1, n) + blend.count(2, n), n);
  }
  EXPECT_NEAR(static_cast<double>(blend.count(1, far)) / static_cast<double>(far), 0.2, 1e-11);
}

TEST(Blend, WeightsOfAnySizeCount) {
  const Blend large({1e308, 1e308, 1e308}), small({1e-308, 3e-308});
  EXPECT_NEAR(large.share(1), 1.0 / 3, 1e-11);
  EXPECT_NEAR(small.share(0), 0.25, 1e-11);
  EXPECT_EQ(Blend({2, 1}).share(0), Blend({0.5, 0.25}).share(0));
  EXPECT_THROW(Blend({1, 0}), Error);
  EXPECT_THROW(Blend({1, -1}), Error);
  EXPECT_THROW(Blend({std::numeric_limits<double>::infinity()}), Error);
}

TEST(Blend, TheOrderNeverChanges) {
  // The order must not depend on the build.
  const Blend blend({0.5, 0.3, 0.2});
  std::vector<std::size_t> first;
  for (std::int64_t n = 0; n < 10; ++n) first.push_back(blend.position_of(n).corpus);
  EXPECT_THAT(first, ElementsAre(0, 1, 0, 2, 0, 1, 0, 2, 0, 1));
}

/// Corpus k has the tokens from k * 1000.
class Three {
 public:
  Three() {
    for (int k = 0; k < 3; ++k) {
      std::vector<std::int32_t> stream(static_cast<std::size_t>(200 * (k + 1)));
      std::iota(stream.begin(), stream.end(), 1000 * k);
      paths.push_back(folder / std::string(1, static_cast<char>('a' + k)));
      write_tokens(paths.back(), 4, stream);
    }
  }
  TempFolder folder;
  std::vector<std::filesystem::path> paths;
};

TEST(BlendedDataset, TakesEachSampleFromItsCorpus) {
  const Three three;
  const BlendedDataset blended({three.paths, {1, 2, 1}}, 8, 3000, 7);
  std::vector<std::int32_t> tokens(8 * 5), targets(8 * 5);
  for (std::int64_t n = 0; n < 200; n += 5) {
    const std::int64_t samples[] = {n, n + 1, n + 2, n + 3, n + 4};
    blended.microbatch(samples, {tokens.data(), DType::i32, {8, 5}}, {targets.data(), DType::i32, {8, 5}});
    for (std::size_t i = 0; i < 5; ++i) {
      const Blend::Position position = blended.blend().position_of(samples[i]);
      const auto first =
          static_cast<std::int64_t>(1000 * position.corpus) + blended.corpus(position.corpus).start_of(position.sample);
      for (std::size_t row = 0; row < 8; ++row) {
        EXPECT_EQ(tokens[row * 5 + i], first + static_cast<std::int64_t>(row));
        EXPECT_EQ(targets[row * 5 + i], first + static_cast<std::int64_t>(row) + 1);
      }
    }
  }
}

TEST(BlendedDataset, WithoutWeightsACorpusCountsAsItsTokens) {
  const Three three;
  const BlendedDataset blended({three.paths, {}}, 8, 3000, 7);
  EXPECT_NEAR(blended.blend().share(0), 1.0 / 6, 1e-9);
  EXPECT_NEAR(blended.blend().share(2), 0.5, 1e-9);
  // 600 tokens give 74 windows of 8, so half of 148 samples are one epoch.
  EXPECT_DOUBLE_EQ(blended.epochs(2, 148), 1);
}

TEST(BlendedDataset, OfOneCorpusGivesThatDatasetsSamples) {
  const Three three;
  const BlendedDataset blended({{three.paths[1]}, {}}, 8, 3000, 7);
  const Dataset alone(three.paths[1], 8, 3000, 7);
  std::vector<std::int32_t> tokens(8), targets(8), own(8), next(8);
  for (std::int64_t n = 0; n < 100; ++n) {
    const std::int64_t samples[] = {n};
    blended.microbatch(samples, {tokens.data(), DType::i32, {8, 1}}, {targets.data(), DType::i32, {8, 1}});
    alone.microbatch(samples, {own.data(), DType::i32, {8, 1}}, {next.data(), DType::i32, {8, 1}});
    EXPECT_EQ(tokens, own);
    EXPECT_EQ(targets, next);
  }
}

TEST(BlendedDataset, NamesTheCorpusThatCannotBeUsed) {
  const Three three;
  EXPECT_THAT(error_of([&] {
                BlendedDataset({three.paths, {}}, 8, 2500, 7);
              }),
              HasSubstr((three.folder / "c.bin").string() + ": token 500 has id 2500,"));
  EXPECT_THAT(error_of([&] {
                BlendedDataset({three.paths, {}}, 200, 3000, 7);
              }),
              HasSubstr((three.folder / "a.bin").string() + ": holds 200 tokens"));
}

} // namespace
} // namespace triax::data
