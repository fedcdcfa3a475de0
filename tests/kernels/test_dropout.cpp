// SPDX-License-Identifier: Apache-2.0
// Dropout's mask: the share and the scale, and that the mask depends on the element and not on the view.
#include "kernels/kit.hpp"

namespace triax::test {
namespace {

using DropoutMask = FormulasTest;

Drop drop_of(const TensorView& samples, float p, std::int64_t rows, std::int64_t width) {
  return {.p = p,
          .key = philox_key(42, RandomPurpose::dropout),
          .site = 17,
          .samples = samples,
          .rows = rows,
          .width = width};
}

TEST_F(DropoutMask, DropsTheShareAskedForAndKeepsTheMean) {
  Longs samples({4}, {0, 1, 2, 3});
  Array x({1000, 4, 50}, 1.0), y = unwritten({1000, 4, 50});
  for (const float p : {0.0f, 0.1f, 0.5f, 0.9f}) {
    run(Dropout{y, x, drop_of(samples, p, 1000, 50)});
    double dropped = 0, sum = 0;
    for (const double value : y.data) {
      dropped += value == 0;
      sum += value;
      ASSERT_TRUE(value == 0 || value == 1 / (1 - static_cast<double>(p)));
    }
    // Five standard deviations of 200000 draws.
    const double share = static_cast<double>(p), n = 200000;
    EXPECT_NEAR(dropped / n, share, 5 * std::sqrt(share * (1 - share) / n)) << p;
    EXPECT_NEAR(sum / n, 1, 5 * std::sqrt(share / (1 - share) / n)) << p;
  }
}

TEST_F(DropoutMask, EachSampleSiteAndKeyHasItsOwn) {
  Array x({64, 64}, 1.0);
  const auto mask = [&](std::int64_t sample, std::uint32_t site, std::uint64_t seed) {
    Longs samples({1}, sample);
    Drop drop = drop_of(samples, 0.5f, 64, 64);
    drop.site = site;
    drop.key = philox_key(seed, RandomPurpose::dropout);
    Array y = unwritten({64, 64});
    run(Dropout{y, x, drop});
    return y.data;
  };
  const std::vector<double> base = mask(1, 2, 3);
  EXPECT_EQ(mask(1, 2, 3), base);
  for (const auto& other : {mask(2, 2, 3), mask(1, 3, 3), mask(1, 2, 4)}) {
    int same = 0;
    for (std::size_t i = 0; i < base.size(); ++i) same += other[i] == base[i];
    EXPECT_NEAR(same, 2048, 5 * 32); // half of 4096 agree by chance; five standard deviations
  }
}

/// The mask by definition: the random word of the element in the sample's global tensor.
bool dropped(const Drop& drop, std::int64_t head, std::int64_t row, std::int64_t column, std::int64_t sample) {
  const std::int64_t e = (head * drop.rows + row) * drop.width + column;
  return philox_at(drop.key, static_cast<std::uint64_t>(e), drop.site,
                   static_cast<std::uint32_t>(sample))[static_cast<std::size_t>(e % 4)] < drop_threshold(drop.p);
}

TEST_F(DropoutMask, RowsAnywhereHaveTheMaskOfTheWhole) {
  // Positions 3..5 of 8, columns 5..8 of 13, samples 21 and 20 in this order.
  Longs samples({2}, {21, 20});
  Drop drop = drop_of(samples, 0.5f, 8, 13);
  drop.row0 = 3;
  drop.column0 = 5;
  Array x({3, 2, 4}, 1.0), y = unwritten({3, 2, 4});
  run(Dropout{y, x, drop});
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(y[r * 4 + j] == 0, dropped(drop, 0, 3 + r / 2, 5 + j, 21 - r % 2));
    }
  }
}

TEST_F(DropoutMask, ScoresAnywhereHaveTheMaskOfTheWhole) {
  Longs samples({2}, {4, 5});
  Drop drop = drop_of(samples, 0.5f, 9, 11);
  drop.head0 = 2;
  drop.row0 = 1;
  drop.column0 = 3;
  Array x({2, 3, 4, 5}, 1.0), y = unwritten({2, 3, 4, 5});
  run(Dropout{y, x, drop});
  for (std::int64_t i = 0; i < 120; ++i) {
    EXPECT_EQ(y[i] == 0, dropped(drop, 2 + i / 20 % 3, 1 + i / 5 % 4, 3 + i % 5, 4 + i / 60)) << i;
  }
}

} // namespace
} // namespace triax::test
