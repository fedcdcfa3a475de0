// SPDX-License-Identifier: Apache-2.0
// The weights of a checkpoint: their order, and the verification of their checksums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/weights.hpp"
#include "support/error_of.hpp"
#include "written_checkpoint.hpp"

namespace triax::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string check(const std::filesystem::path& folder, const StopRequest& stop = {}) {
  return test::error_of([&] {
    TensorReader reader(folder);
    check_weights(reader, stop);
  });
}

TEST(NameOrder, CountsNumbersAsNumbers) {
  EXPECT_TRUE(is_before("block 2/w", "block 10/a"));
  EXPECT_FALSE(is_before("block 10/a", "block 2/w"));
  EXPECT_TRUE(is_before("block 2/a", "block 2/w"));
  EXPECT_TRUE(is_before("block", "block 2"));
  EXPECT_FALSE(is_before("w", "w"));
  EXPECT_TRUE(is_before("w1", "w01") != is_before("w01", "w1"));
  EXPECT_TRUE(is_before("w99999999999999999999", "w100000000000000000000"));
}

TEST(CheckpointWeights, AreSortedAndWithoutTheOptimizer) {
  const test::TempFolder folder;
  write_checkpoint(
      folder / "a",
      {{"block 10/w", {2}, {}}, {"block 9/w", {3}, {}}, {"block 9/w", {3}, {}, "m"}, {"block 9/b", {4}, {}}});
  const Manifest manifest = read_manifest(folder / "a/manifest.json");
  std::vector<std::string> names;
  for (const SavedTensor* tensor : weights_of(manifest)) names.push_back(tensor->parameter);
  EXPECT_EQ(names, (std::vector<std::string>{"block 9/b", "block 9/w", "block 10/w"}));
  EXPECT_EQ(parameters_of(manifest), 9);
}

TEST(CheckpointWeights, ThatAreNotWhatWasWrittenAreRefused) {
  const test::TempFolder folder;
  write_checkpoint(folder / "a", {{"w", {4, 3}, {}}}, 7, 2);
  EXPECT_EQ(check(folder / "a"), "no error");
  damage(folder / "a/weights-1.safetensors");
  EXPECT_THAT(check(folder / "a"), HasSubstr("weights-1.safetensors: checksum mismatch in tensor \"w[2:4, 0:3]\""));
  EXPECT_THAT(check(folder / "a", [] { return true; }), HasSubstr("stopped"));
}

TEST(CheckpointWeights, OfACheckpointWithoutWeightsOrWithIntegersAreRefused) {
  const test::TempFolder folder;
  write_checkpoint(folder / "none", {{"w", {3}, {}, "m"}});
  EXPECT_THAT(check(folder / "none"), HasSubstr("manifest.json: names no weights"));
  write_checkpoint(folder / "integers", {{"w", {2}, {0, 0}, kMasterState, DType::i64}});
  EXPECT_THAT(check(folder / "integers"), HasSubstr("w (master) is i64, which is not a floating type"));
}

} // namespace
} // namespace triax::checkpoint
