// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel layers give the same results with 2, 3 and 4 ranks as with one, and send as much as the formulas say.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tiny_layer.hpp"

namespace triax::test {
namespace {

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// |a - b| / |b|, both as vectors.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm); // NaN in any element fails every comparison
}

struct Precision {
  DType dtype;
  double tolerance;
};

class Pieces : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Tensor, Pieces, ::testing::Values(2, 3, 4),
                         [](const auto& each) { return "t" + std::to_string(each.param); });

TEST_P(Pieces, GiveTheResultsOfOneRank) {
  for (const Precision precision : {Precision{DType::f64, 1e-12}, Precision{DType::f32, 1e-5}}) {
    // 13: padded; 64: a part stores as many rows as the vocabulary; 128: not padded at t = 2; 5: at t = 4 a rank has
    // only padding.
    for (const std::int64_t vocab : {13, 64, 128, 5}) {
      const bool gated = vocab == 13 || vocab == 5;
      const TinyResult whole = run_tiny({1, precision.dtype, vocab, false, gated});
      const TinyResult split = run_tiny({GetParam(), precision.dtype, vocab, false, gated});
      SCOPED_TRACE(text("{} vocabulary {}", name_of(precision.dtype), vocab));
      EXPECT_LT(distance(split.loss, whole.loss), precision.tolerance);
      EXPECT_LT(distance(split.hidden, whole.hidden), precision.tolerance);
      ASSERT_EQ(split.gradients.size(), gated ? 5u : 8u);
      for (const auto& [name, gradient] : whole.gradients) {
        EXPECT_LT(distance(split.gradients.at(name), gradient), precision.tolerance) << name;
      }
    }
  }
}

TEST_P(Pieces, SendTheReductionsOfThePaper) {
  const TinyResult split = run_tiny({GetParam(), DType::f64, 13});
  const std::map<std::string, std::uint64_t> expected = {{"embedding", 1},
                                                         {"norm", 0},
                                                         {"up", 0},
                                                         {"down", 1},
                                                         {"head", 3},
                                                         {"head backward", 1},
                                                         {"head weight", 0},
                                                         {"down backward", 0},
                                                         {"down weight", 0},
                                                         {"up backward", 1},
                                                         {"up weight", 0},
                                                         {"norm backward", 0},
                                                         {"embedding backward", 0},
                                                         {"embedding weight", 0}};
  EXPECT_EQ(split.all_reduces, expected);
}

/// The same results where the tensor ranks divide the positions. An all-reduce becomes a reduce-scatter and an
/// all-gather, which move as many bytes together; a gather of a linear layer's input is repeated for the weight
/// gradient.
TEST_P(Pieces, GiveTheSameResultsWithSequenceParallelism) {
  for (const bool gated : {false, true}) {
    const TinyResult whole = run_tiny({1, DType::f64, 13, false, gated});
    const TinyResult parallel = run_tiny({GetParam(), DType::f64, 13, true, gated});
    EXPECT_LT(distance(parallel.loss, whole.loss), 1e-12);
    EXPECT_LT(distance(parallel.hidden, whole.hidden), 1e-12);
    for (const auto& [name, gradient] : whole.gradients)
      EXPECT_LT(distance(parallel.gradients.at(name), gradient), 1e-12) << name;
    const std::map<std::string, std::uint64_t> expected = {{"embedding", 1},
                                                           {"norm", 0},
                                                           {"up", 1},
                                                           {"down", 1},
                                                           {"head", 4},
                                                           {"head backward", 1},
                                                           {"head weight", 0},
                                                           {"down backward", 1},
                                                           {"down weight", 0},
                                                           {"up backward", 2},
                                                           {"up weight", 0},
                                                           {"norm backward", 0},
                                                           {"embedding backward", 1},
                                                           {"embedding weight", 0}};
    EXPECT_EQ(parallel.all_reduces, expected); // collectives of any kind
  }
}

TEST_P(Pieces, LossMovesThreeNumbersForEachToken) {
  const TinyResult split = run_tiny({GetParam(), DType::f64, 13});
  const std::uint64_t all_reduce = 2 * static_cast<std::uint64_t>(GetParam() - 1) * TinyCase::kSequence *
                                   TinyCase::kMicro * sizeof(double); // sum over all ranks
  EXPECT_EQ(split.loss_bytes, 3 * all_reduce);
}

TEST_P(Pieces, NoRankHasLogitsOfTheWholeVocabulary) {
  const TinyResult split = run_tiny({GetParam(), DType::f64, 301});
  const std::int64_t stored = vocab_range(301, GetParam(), 0).stored;
  EXPECT_LT(stored, 301 / GetParam() + 1 + kVocabMultiple);
  EXPECT_EQ(split.logits, std::vector<Shape>(static_cast<std::size_t>(GetParam()),
                                             Shape{TinyCase::kSequence, TinyCase::kMicro, stored}));
}

TEST_P(Pieces, GiveTheSameBitsInEveryRun) {
  const TinyResult one = run_tiny({GetParam(), DType::f32, 13}), two = run_tiny({GetParam(), DType::f32, 13});
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.gradients, two.gradients);
}

TEST(OneRank, SendsNothing) {
  for (const auto& [name, count] : run_tiny({}).all_reduces) EXPECT_EQ(count, 0u) << name;
}

/// Compares the gradients with finite differences of the loss.
TEST(OneRank, GradientsAreThoseOfTheLoss) {
  constexpr double kStep = 1e-5;
  const double tokens = TinyCase::kSequence * TinyCase::kMicro;
  for (const bool gated : {false, true}) {
    const TinyResult here = run_tiny({1, DType::f64, 13, false, gated});
    for (const auto& [name, gradient] : here.gradients)
      for (std::size_t element = 0; element < gradient.size(); element += 1 + gradient.size() / 5) {
        const double up = total(run_tiny({1, DType::f64, 13, false, gated, name, element, kStep}).loss);
        const double down = total(run_tiny({1, DType::f64, 13, false, gated, name, element, -kStep}).loss);
        EXPECT_NEAR(gradient[element], (up - down) / (2 * kStep) / tokens, 1e-8) << name << " " << element;
      }
  }
}

} // namespace
} // namespace triax::test
