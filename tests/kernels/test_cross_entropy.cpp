// SPDX-License-Identifier: Apache-2.0
// Cross-entropy, whole and split by columns as over tensor ranks, with padding columns.
#include "kernels/kit.hpp"

namespace triax::test {
namespace {

constexpr std::int64_t kRows = 6, kSamples = 2, kVocab = 11;

using CrossEntropy = FormulasTest;

Ints targets() {
  return Ints({kRows / kSamples, kSamples}, {3, 10, 0, 7, 7, 4});
}

double direct_loss(const Array& logits, const Ints& target, std::int64_t sample) {
  double loss = 0;
  for (std::int64_t r = sample; r < kRows; r += kSamples) {
    double sum = 0;
    for (std::int64_t j = 0; j < kVocab; ++j) sum += std::exp(logits[r * kVocab + j]);
    loss += std::log(sum) - logits[r * kVocab + target[r]];
  }
  return loss;
}

TEST_F(CrossEntropy, FusedIsTheFormulaAndItsGradient) {
  Array logits = random({kRows, kVocab}, 1, -3, 3);
  Ints target = targets();
  Array loss = unwritten({kSamples}), max = unwritten({kRows}), sum = unwritten({kRows}), hit = unwritten({kRows});
  const auto total = [&] {
    run(XentFused{loss, max, sum, hit, logits, target, kVocab});
    return 0.25 * (loss[0] + loss[1]);
  };
  total();
  for (std::int64_t i = 0; i < kSamples; ++i) EXPECT_NEAR(loss[i], direct_loss(logits, target, i), 1e-13);
  Array gradient = logits;
  run(XentBwd{gradient, max, sum, target, 0, kVocab, 0.25, nullptr});
  check_gradient("cross-entropy", logits, gradient, total);
}

// Columns are split into parts of `stored`, the last ones padded; the test computes the all-reduces itself.
TEST_F(CrossEntropy, PartsAreTheWhole) {
  const Array logits = random({kRows, kVocab}, 1, -3, 3);
  Ints target = targets();
  Array whole = logits, loss = unwritten({kSamples}), max = unwritten({kRows}), sum = unwritten({kRows});
  Array hit = unwritten({kRows});
  run(XentFused{loss, max, sum, hit, whole, target, kVocab});
  run(XentBwd{whole, max, sum, target, 0, kVocab, 1, nullptr});

  for (const std::int64_t parts : {1, 2, 3, 4, 8}) { // with 8 the last ranks have only padding
    const std::int64_t stored = (kVocab + parts - 1) / parts;
    std::vector<Array> part;
    Array part_max = unwritten({kRows}), part_sum = unwritten({kRows}), part_hit = unwritten({kRows});
    Array all_max({kRows}, -std::numeric_limits<double>::infinity()), all_sum({kRows}, 0.0), all_hit({kRows}, 0.0);
    const auto begin_of = [&](std::int64_t i) { return std::min(i * stored, kVocab); };
    const auto valid_of = [&](std::int64_t i) { return std::min(stored, kVocab - begin_of(i)); };
    for (std::int64_t i = 0; i < parts; ++i) {
      Array& x = part.emplace_back(unwritten({kRows, stored})); // padding columns are NaN: must not be read
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t j = 0; j < valid_of(i); ++j) x[r * stored + j] = logits[r * kVocab + begin_of(i) + j];
      }
      run(XentMax{part_max, x, valid_of(i)});
      for (std::int64_t r = 0; r < kRows; ++r) all_max[r] = std::max(all_max[r], part_max[r]);
    }
    for (std::int64_t i = 0; i < parts; ++i) {
      run(XentSums{part_sum, part_hit, part[static_cast<std::size_t>(i)], all_max, target, begin_of(i), valid_of(i)});
      for (std::int64_t r = 0; r < kRows; ++r) {
        all_sum[r] += part_sum[r];
        all_hit[r] += part_hit[r];
      }
    }
    Array split_loss = unwritten({kSamples});
    run(XentLoss{split_loss, all_sum, all_hit});
    expect_near(split_loss, loss, 1e-13, "loss");
    for (std::int64_t i = 0; i < parts; ++i) {
      Array& x = part[static_cast<std::size_t>(i)];
      run(XentBwd{x, all_max, all_sum, target, begin_of(i), valid_of(i), 1, nullptr});
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t j = 0; j < stored; ++j) {
          const double want = j < valid_of(i) ? whole[r * kVocab + begin_of(i) + j] : 0;
          ASSERT_NEAR(x[r * stored + j], want, 1e-14) << parts << " parts, part " << i << ", column " << j;
        }
      }
    }
  }
}

TEST_F(CrossEntropy, LossScaleMultipliesTheGradient) {
  const Array logits = random({kRows, kVocab}, 1);
  Ints target = targets();
  Array max = unwritten({kRows}), sum = unwritten({kRows}), hit = unwritten({kRows}), plain = logits, scaled = logits;
  run(XentMax{max, plain, kVocab});
  run(XentSums{sum, hit, plain, max, target, 0, kVocab});
  run(XentBwd{plain, max, sum, target, 0, kVocab, 0.5, nullptr});
  const StepScalars scalars{.loss_scale = 8};
  run(XentBwd{scaled, max, sum, target, 0, kVocab, 0.5, &scalars});
  for (std::int64_t i = 0; i < kRows * kVocab; ++i) EXPECT_DOUBLE_EQ(scaled[i], 8 * plain[i]);
}

TEST_F(CrossEntropy, LargeLogitsDoNotOverflow) {
  Array logits({1, 2}, {1e4, -1e4}), loss = unwritten({1}), max = unwritten({1}), sum = unwritten({1});
  Array hit = unwritten({1});
  Ints target({1}, 1);
  run(XentFused{loss, max, sum, hit, logits, target, 2});
  EXPECT_DOUBLE_EQ(loss[0], 2e4);
}

} // namespace
} // namespace triax::test
