// SPDX-License-Identifier: Apache-2.0
// Weights as one safetensors file: whole tensors in any type, the same file for any ranks, and no file after an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/export_weights.hpp"
#include "checkpoint/safetensors.hpp"
#include "support/error_of.hpp"
#include "written_checkpoint.hpp"

namespace triax::checkpoint {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeightsExports : public ::testing::Test {
 protected:
  ExportedWeights write(const std::string& from, const std::string& to, const ExportChoice& choice = {}) {
    TensorReader reader(folder_ / from);
    return WeightsExport(reader, folder_ / to, choice).write();
  }
  std::string refusal(const std::string& from, const std::string& to, const ExportChoice& choice = {}) {
    return test::error_of([&] { write(from, to, choice); });
  }
  std::vector<double> values(const std::string& file, const std::string& name) const {
    const os::InputFile in(folder_ / file);
    const SafetensorsHeader header = read_header(in, folder_ / file);
    for (const TensorEntry& entry : header.entries) {
      if (entry.name != name) continue;
      std::vector<std::byte> bytes(entry.bytes());
      in.read_at(header.bytes + entry.begin, bytes);
      std::vector<double> out(static_cast<std::size_t>(entry.shape.elements()));
      to_doubles(entry.dtype, bytes.data(), out);
      return out;
    }
    return {};
  }
  test::TempFolder folder_;
  const std::vector<TestTensor> tensors_ = {
      {"block 10/w", {5, 3}, {}}, {"block 2/b", {3}, {0.1, -0.0, 1e-3}}, {"block 2/b", {3}, {}, "m"}};
};

TEST_F(WeightsExports, HoldWholeTensorsByName) {
  write_checkpoint(folder_ / "a", tensors_, 7, 3);
  const ExportedWeights made = write("a", "w.safetensors");
  EXPECT_EQ(made.tensors, 2u);
  EXPECT_EQ(made.parameters, 18);
  EXPECT_EQ(made.bytes, fs::file_size(folder_ / "w.safetensors"));
  const SafetensorsHeader header = read_header(os::InputFile(folder_ / "w.safetensors"), folder_ / "w.safetensors");
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "block 2/b");
  EXPECT_EQ(header.entries[1].shape, (Shape{5, 3}));
  EXPECT_EQ(values("w.safetensors", "block 10/w"), test_values(tensors_[0]));
  EXPECT_THAT(test::read_file(folder_ / "w.safetensors"),
              HasSubstr("\"__metadata__\":{\"step\":\"7\",\"tokens\":\"2800\""));
}

TEST_F(WeightsExports, DoNotDependOnTheRanks) {
  write_checkpoint(folder_ / "a", tensors_, 7, 1);
  write_checkpoint(folder_ / "b", {tensors_[2], tensors_[1], tensors_[0]}, 7, 3);
  for (const char* from : {"a", "b"}) write(from, std::string(from) + ".safetensors", {DType::bf16, false});
  EXPECT_EQ(test::read_file(folder_ / "a.safetensors"), test::read_file(folder_ / "b.safetensors"));
}

TEST_F(WeightsExports, AreRoundedOnceToTheType) {
  write_checkpoint(folder_ / "a", tensors_);
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    write("a", "w.safetensors", {type, true});
    std::vector<std::byte> bytes(3 * bytes_of(type));
    std::vector<double> rounded(3);
    const std::vector<double> master = {static_cast<float>(0.1), -0.0, static_cast<float>(1e-3)};
    from_doubles(master, type, bytes.data());
    to_doubles(type, bytes.data(), rounded);
    EXPECT_EQ(values("w.safetensors", "block 2/b"), rounded) << name_of(type);
  }
}

TEST_F(WeightsExports, OfLargeTensorsAreWrittenInBlocks) {
  const Shape large = {3, kBlockElements / 2 + 5};
  write_checkpoint(folder_ / "a", {{"w", large, {}}}, 7, 2);
  write("a", "w.safetensors");
  EXPECT_EQ(values("w.safetensors", "w"), test_values({"w", large, {}}));
}

TEST_F(WeightsExports, RefuseAFileThatExists) {
  write_checkpoint(folder_ / "a", tensors_);
  test::write_file(folder_ / "w.safetensors", "mine");
  EXPECT_THAT(refusal("a", "w.safetensors"), HasSubstr("w.safetensors: already exists\n  add --force to replace it"));
  EXPECT_EQ(test::read_file(folder_ / "w.safetensors"), "mine");
  std::filesystem::create_symlink("w.safetensors", folder_ / "link"); // such as /dev/stdout
  EXPECT_THAT(refusal("a", "link"), HasSubstr("link: is a symbolic link\n  name the file that it leads to"));
  std::filesystem::remove(folder_ / "link");
  EXPECT_THAT(refusal("a", "a/manifest.json"), HasSubstr("a/manifest.json: is in a checkpoint, which it would damage"));
  EXPECT_THAT(refusal("a", "a", {{}, true}), HasSubstr("is a folder, not a regular file"));
  EXPECT_EQ(refusal("a", "w.safetensors", {{}, true}), "no error");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("a", "w.safetensors"));
}

TEST_F(WeightsExports, ThatFailLeaveNoFile) {
  write_checkpoint(folder_ / "a", {{"w", {2}, {1, 7e4}}});
  EXPECT_THAT(refusal("a", "w.safetensors", {DType::f16, false}),
              HasSubstr("w (master) has values that are too large for f16"));
  EXPECT_THAT(refusal("a", "none/w.safetensors"),
              HasSubstr("none/w.safetensors: cannot be written: No such file or directory"));
  damage(folder_ / "a/weights-0.safetensors");
  test::write_file(folder_ / "old.safetensors", "mine");
  EXPECT_THAT(refusal("a", "old.safetensors", {{}, true}), HasSubstr("checksum mismatch in tensor \"w\""));
  EXPECT_EQ(test::read_file(folder_ / "old.safetensors"), "mine");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("a", "old.safetensors"));
}

TEST_F(WeightsExports, ThatAreStoppedLeaveNoFile) {
  write_checkpoint(folder_ / "a", tensors_);
  int calls = 0;
  for (std::string error = "?"; error != "no error"; ++calls) {
    int left = calls;
    TensorReader reader(folder_ / "a");
    error = test::error_of(
        [&] { WeightsExport(reader, folder_ / "w.safetensors", {}).write([&left] { return left-- <= 0; }); });
    if (error == "no error") break;
    ASSERT_EQ(error, "stopped by a signal");
    ASSERT_THAT(names_in(folder_.path()), ElementsAre("a"));
  }
  EXPECT_GT(calls, 3);
}

} // namespace
} // namespace triax::checkpoint
