// SPDX-License-Identifier: Apache-2.0
// Differences of checkpoints: by bits, whatever ranks wrote them, with the largest differences of values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/checkpoint_difference.hpp"
#include "support/error_of.hpp"
#include "written_checkpoint.hpp"

namespace triax::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointDifferences : public ::testing::Test {
 protected:
  CheckpointDifference difference(bool weights_only = false) const {
    TensorReader a(folder_ / "a/x"), b(folder_ / "b/x");
    return compare(a, b, weights_only);
  }
  test::TempFolder folder_;
};

TEST_F(CheckpointDifferences, DoNotDependOnTheRanks) {
  const std::vector<TestTensor> tensors = {{"w", {5, 3}, {}}, {"w", {5, 3}, {}, "m"}, {"b", {3}, {}}};
  write_checkpoint(folder_ / "a/x", tensors, 7, 1);
  write_checkpoint(folder_ / "b/x", {tensors[2], tensors[0], tensors[1]}, 7, 3);
  const CheckpointDifference found = difference();
  EXPECT_TRUE(found.is_equal());
  EXPECT_EQ(found.compared, 3u);
  ASSERT_EQ(found.config.size(), 1u); // equal tensors of runs with other keys are equal
  EXPECT_EQ(found.config[0].key, "run.dir");
  EXPECT_EQ(found.config[0].second, (folder_ / "b").string());
}

TEST_F(CheckpointDifferences, HaveTheLargestDifferencesOfATensor) {
  write_checkpoint(folder_ / "a/x", {{"w", {5}, {1, 100, 0, 8, -2}}, {"same", {2}, {}}});
  write_checkpoint(folder_ / "b/x", {{"w", {5}, {1, 104, 0.5, 8, -1}}, {"same", {2}, {}}});
  const CheckpointDifference found = difference();
  EXPECT_FALSE(found.is_equal());
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_EQ(found.tensors[0].parameter, "w");
  EXPECT_EQ(found.tensors[0].differing, 3);
  EXPECT_EQ(found.tensors[0].max_absolute, 4);
  EXPECT_EQ(found.tensors[0].max_relative, 1); // of 0 and 0.5
  EXPECT_EQ(found.tensors[0].not_finite, 0);
  EXPECT_EQ(found.compared, 2u);
}

TEST_F(CheckpointDifferences, AreThoseOfBits) {
  write_checkpoint(folder_ / "a/x", {{"w", {4}, {0.0, std::nan(""), 1, HUGE_VAL}}});
  write_checkpoint(folder_ / "b/x", {{"w", {4}, {-0.0, std::nan(""), std::nan(""), 1}}});
  const CheckpointDifference found = difference();
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_EQ(found.tensors[0].differing, 3);
  EXPECT_EQ(found.tensors[0].not_finite, 2);
  EXPECT_EQ(found.tensors[0].max_absolute, 0);
}

TEST_F(CheckpointDifferences, OfTypesAreThoseOfValues) {
  write_checkpoint(folder_ / "a/x", {{"v", {2}, {0.5, 0.1}}, {"w", {2}, {0.5, 2}}});
  write_checkpoint(folder_ / "b/x",
                   {{"v", {2}, {0.5, 0.1}, kMasterState, DType::f64}, {"w", {2}, {0.5, 2}, kMasterState, DType::f64}});
  const CheckpointDifference found = difference();
  ASSERT_EQ(found.tensors.size(), 2u);
  EXPECT_EQ(found.tensors[0].differing, 1);
  EXPECT_LT(found.tensors[0].max_relative, 1e-7);
  EXPECT_EQ(found.tensors[1].differing, 0);
  EXPECT_EQ(found.tensors[1].second_type, DType::f64);
}

TEST_F(CheckpointDifferences, NameTensorsOfOneSideAndOtherShapes) {
  write_checkpoint(folder_ / "a/x", {{"v", {2}, {}}, {"w", {2, 3}, {}}, {"w", {2, 3}, {}, "m"}});
  write_checkpoint(folder_ / "b/x", {{"u", {2}, {}}, {"w", {3, 2}, {}}}, 9);
  const CheckpointDifference found = difference();
  EXPECT_THAT(found.only_first, ElementsAre("v (master)", "w (m)"));
  EXPECT_THAT(found.only_second, ElementsAre("u (master)"));
  ASSERT_EQ(found.tensors.size(), 1u);
  EXPECT_FALSE(found.tensors[0].is_same_shape());
  std::vector<std::string> keys;
  for (const ValueDifference& of : found.training) keys.push_back(of.key);
  EXPECT_THAT(keys, ElementsAre("samples", "step", "tokens"));
}

TEST_F(CheckpointDifferences, OfWeightsLeaveOutTheRest) {
  write_checkpoint(folder_ / "a/x", {{"w", {2}, {}}, {"w", {2}, {1, 2}, "m"}}, 7);
  write_checkpoint(folder_ / "b/x", {{"w", {2}, {}}, {"w", {2}, {3, 4}, "m"}, {"w", {2}, {}, "v"}}, 9);
  EXPECT_FALSE(difference().is_equal());
  const CheckpointDifference found = difference(true);
  EXPECT_TRUE(found.is_equal());
  EXPECT_EQ(found.compared, 1u);
  EXPECT_THAT(found.training, IsEmpty());
}

TEST_F(CheckpointDifferences, OfLargeTensorsAreFoundInEachBlock) {
  const Shape large = {3, kBlockElements / 2 + 5};
  TestTensor changed{"w", large, test_values({"w", large, {}})};
  write_checkpoint(folder_ / "a/x", {changed}, 7, 2);
  for (const std::size_t at : {std::size_t{0}, changed.values.size() / 2, changed.values.size() - 1})
    changed.values[at] += 1;
  write_checkpoint(folder_ / "b/x", {changed}, 7, 3);
  ASSERT_EQ(difference().tensors.size(), 1u);
  EXPECT_EQ(difference().tensors[0].differing, 3);
  EXPECT_EQ(difference().tensors[0].max_absolute, 1);
}

TEST_F(CheckpointDifferences, OfAFileThatIsMissingAreAnError) {
  write_checkpoint(folder_ / "a/x", {{"w", {2}, {}}});
  write_checkpoint(folder_ / "b/x", {{"w", {2}, {}}});
  std::filesystem::remove(folder_ / "b/x/weights-0.safetensors");
  EXPECT_THAT(test::error_of([&] { difference(); }), HasSubstr("b/x/weights-0.safetensors: does not exist"));
}

} // namespace
} // namespace triax::checkpoint
