// SPDX-License-Identifier: Apache-2.0
// Index computations of kernels, run on the host: dropped elements and visible keys match the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/loaded_kernels.hpp"
#include "triax/cuda/drop.hpp"
#include "triax/cuda/mask.hpp"

namespace triax::cuda {
namespace {

class Numbering : public ::testing::Test {
 protected:
  triax::test::LoadedKernels reference_{"kernels-reference"};
  std::unique_ptr<Stream> stream_ = reference_.device().make_stream("test");
  std::vector<std::int64_t> samples_ = {3, 4, (std::int64_t{1} << 32) + 5}; // only 32 bits are used

  void expect_dropped_alike(const Shape& shape, std::int64_t batch, float p) {
    std::vector<float> ones(static_cast<std::size_t>(shape.elements()), 1.0f), out(ones.size());
    Dropout args{{out.data(), DType::f32, shape}, {ones.data(), DType::f32, shape}, {}};
    args.drop = {p, philox_key(99, RandomPurpose::dropout), 35, {samples_.data(), DType::i64, {batch}}, 1, 2, 3};
    args.drop.rows = 4000;
    args.drop.width = 9000;
    reference_.set().dropout(args, {*stream_, {}});
    const DropArguments plan = drop_arguments(args);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool here = dropped(plan, static_cast<std::int64_t>(i));
      ASSERT_EQ(out[i], here ? 0.0f : plan.scale) << "element " << i;
      count += here ? 1 : 0;
    }
    const double expected = static_cast<double>(p) * static_cast<double>(out.size());
    EXPECT_NEAR(static_cast<double>(count), expected, 6 * std::sqrt(expected) + 1);
  }
};

TEST_F(Numbering, OfRows) {
  expect_dropped_alike({14, 65}, 2, 0.25f);
  expect_dropped_alike({37, 3, 129}, 3, 0.5f);
  expect_dropped_alike({5}, 1, 0.9f);
}

TEST_F(Numbering, OfScores) {
  expect_dropped_alike({2, 3, 5, 33}, 2, 0.1f);
  expect_dropped_alike({3, 2, 17, 70}, 3, 0.4f);
}

/// Far into a long sequence, element numbers exceed 32 bits.
TEST_F(Numbering, PastTwoToTheThirtyTwo) {
  DropArguments plan;
  plan.samples = samples_.data();
  plan.batch = 2;
  plan.row0 = 1 << 20;
  plan.width = 1 << 16;
  plan.columns = 8;
  const DropIndex index = drop_index(plan, 8 * 5 + 3); // row 5: position 2 of sample 1
  EXPECT_EQ(index.sample, 1);
  EXPECT_EQ(index.element, ((std::int64_t{1} << 20) + 2) * (1 << 16) + 3);
  plan.scores = true;
  plan.heads = 4;
  plan.queries = 3;
  plan.head0 = 60000;
  plan.rows = 1 << 21;
  const DropIndex score = drop_index(plan, 8 * (4 * 3 + 2 * 3 + 1) + 7); // sample 1, head 2, query 1
  EXPECT_EQ(score.sample, 1);
  EXPECT_EQ(score.element, (std::int64_t{60002} * (1 << 21) + (1 << 20) + 1) * (1 << 16) + 7);
}

/// The softmax of equal scores shows the number of visible keys: all have the same probability.
TEST_F(Numbering, OfSeenKeys) {
  const std::vector<std::int32_t> lengths = {0, 25};
  for (const bool causal : {false, true}) {
    for (const bool limited : {false, true}) {
      for (const auto& [q0, k0] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {28, 0}, {3, 6}, {1, 40}}) {
        const Shape shape{2, 1, 9, 33};
        std::vector<float> scores(static_cast<std::size_t>(shape.elements()), 0.0f);
        Mask mask{causal ? Mask::Kind::causal : Mask::Kind::none, q0, k0, {}};
        auto given = lengths;
        if (limited) mask.lengths = {given.data(), DType::i32, {2}};
        const TensorView view(scores.data(), DType::f32, shape);
        reference_.set().softmax_fwd({view, view, 1, mask, {}}, {*stream_, {}});
        for (std::int64_t row = 0; row < 18; ++row) {
          const float* of_row = scores.data() + row * 33;
          const auto seen = std::count_if(of_row, of_row + 33, [](float y) { return y > 0; });
          EXPECT_EQ(seen_keys(mask_plan(mask), row / 9, row % 9, 33), seen)
              << "causal " << causal << ", limited " << limited << ", q0 " << q0 << ", k0 " << k0 << ", row " << row;
        }
      }
    }
  }
}

} // namespace
} // namespace triax::cuda
