// SPDX-License-Identifier: Apache-2.0
// The mean of weights: its values, what it is a checkpoint of, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/average_weights.hpp"
#include "support/error_of.hpp"
#include "written_checkpoint.hpp"

namespace triax::checkpoint {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WeightsAverages : public ::testing::Test {
 protected:
  AveragedWeights average(const std::vector<std::string>& names, const std::string& output) {
    std::vector<fs::path> folders;
    for (const std::string& name : names) folders.push_back(folder_ / name);
    return WeightsAverage(folders, folder_ / output).write();
  }
  std::string refusal(const std::vector<std::string>& names, const std::string& output) {
    return test::error_of([&] { average(names, output); });
  }
  test::TempFolder folder_;
};

TEST_F(WeightsAverages, AreCheckpointsOfWeights) {
  write_checkpoint(folder_ / "a", {{"w", {2, 2}, {1, 2, 3, 4}}, {"w", {2, 2}, {}, "m"}}, 10, 1);
  write_checkpoint(folder_ / "b", {{"w", {2, 2}, {2, 4, -3, 0.5}}, {"w", {2, 2}, {}, "m"}}, 30, 2);
  write_checkpoint(folder_ / "c", {{"w", {2, 2}, {3, 0, 3, 0}}}, 20, 2);
  const AveragedWeights made = average({"a", "b", "c"}, "mean/");
  EXPECT_EQ(made.tensors, 1u);
  EXPECT_EQ(made.parameters, 4);
  EXPECT_EQ(made.step, 30);
  EXPECT_EQ(made.bytes, fs::file_size(folder_ / "mean/weights-00000.safetensors"));
  TensorReader reader(folder_ / "mean");
  EXPECT_THAT(reader.verify(0, 1), IsEmpty());
  EXPECT_THAT(read_values(reader, "w"), ElementsAre(2, 2, 1, 1.5));
  EXPECT_EQ(reader.find("w", "m"), nullptr);
  const Manifest& manifest = reader.manifest();
  EXPECT_EQ(manifest.training.step, 30);
  EXPECT_EQ(manifest.tokens, 12000);
  EXPECT_THAT(manifest.mean_of,
              ElementsAre((folder_ / "a").string(), (folder_ / "b").string(), (folder_ / "c").string()));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("a", "b", "c", "mean"));
}

/// The sum of seven equal f32 values is not exact in f32.
TEST_F(WeightsAverages, OfEqualWeightsAreThese) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::string name(name_of(type));
    write_checkpoint(folder_ / name, {{"w", {4}, {0.1, -1e-30, 3e38, 16777215}, kMasterState, type}}, 7, 2);
    average(std::vector<std::string>(7, name), name + "-mean");
    TensorReader mean(folder_ / (name + "-mean")), of(folder_ / name);
    EXPECT_EQ(read_values(mean, "w"), read_values(of, "w")) << name;
  }
}

TEST_F(WeightsAverages, OfOtherTensorsAreRefused) {
  write_checkpoint(folder_ / "a", {{"v", {3}, {}}, {"w", {2, 2}, {}}});
  write_checkpoint(folder_ / "shape", {{"v", {3}, {}}, {"w", {4}, {}}});
  write_checkpoint(folder_ / "type", {{"v", {3}, {}}, {"w", {2, 2}, {}, kMasterState, DType::f64}});
  write_checkpoint(folder_ / "less", {{"w", {2, 2}, {}}});
  EXPECT_THAT(refusal({"a", "shape"}, "mean"),
              HasSubstr("shape: parameter \"w\" is f32[4], but f32[2, 2] in " + (folder_ / "a").string() +
                        "\n  average checkpoints of one model and one train.precision"));
  EXPECT_THAT(refusal({"a", "type"}, "mean"), HasSubstr("parameter \"w\" is f64[2, 2], but f32[2, 2]"));
  EXPECT_THAT(refusal({"a", "a", "less"}, "mean"), HasSubstr("less: parameter \"v\" is missing, but f32[3] in"));
  EXPECT_THAT(refusal({"less", "a"}, "mean"), HasSubstr("a: parameter \"v\" is f32[3], but missing in"));
  EXPECT_FALSE(fs::exists(folder_ / "mean"));
}

TEST_F(WeightsAverages, OutputsAreNotReplacedAndNotNamedAsThoseOfARun) {
  write_checkpoint(folder_ / "a", {{"w", {2}, {}}});
  EXPECT_THAT(refusal({"a"}, "a"), HasSubstr("/a: already exists"));
  EXPECT_THAT(refusal({"a"}, "step-00000009"), HasSubstr("is a name that a run would take for its own checkpoint"));
  EXPECT_THAT(refusal({"a"}, "none/mean"), HasSubstr("none/mean: cannot be created: No such file or directory"));
  EXPECT_EQ(refusal({"a"}, "/proc/mean"),
            "/proc/mean: cannot be created: /proc is part of a kernel file system, where files cannot be created\n"
            "  name a folder in one that this user may write to");
}

TEST_F(WeightsAverages, ThatFailLeaveNoFolder) {
  write_checkpoint(folder_ / "a", {{"w", {2}, {}}});
  write_checkpoint(folder_ / "b", {{"w", {2}, {}}});
  damage(folder_ / "b/weights-0.safetensors");
  EXPECT_THAT(refusal({"a", "b"}, "mean"), HasSubstr("b/weights-0.safetensors: checksum mismatch in tensor \"w\""));
  const std::vector<fs::path> only = {folder_ / "a"};
  int calls = 0;
  EXPECT_EQ(test::error_of([&] { WeightsAverage(only, folder_ / "mean").write([&calls] { return ++calls == 5; }); }),
            "stopped by a signal");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("a", "b"));
}

} // namespace
} // namespace triax::checkpoint
