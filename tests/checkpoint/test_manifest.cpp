// SPDX-License-Identifier: Apache-2.0
// manifest.json: reads back what is written, puts the parts of ranks together, and refuses what is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/manifest.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::checkpoint {
namespace {

using ::testing::HasSubstr;

SavedPart part(int rank) {
  const std::string file = "weights-" + std::to_string(rank) + ".safetensors";
  return {{{file, 100, "aa"}}, {{"w", "master", DType::f32, {4, 3}, {{file, "w", {2 * rank, 0}, {2, 3}, "bb"}}}}};
}

Manifest manifest() {
  PartMerger all;
  all.add(part(0));
  all.add(part(1));
  Manifest out;
  out.training = {200, 1600, 199, 32768, 3, 2, {{"optimizer", "a \"state\"\n"}}};
  out.tokens = 102400;
  out.created = "2026-11-24T18:00:00Z";
  out.engine = "0.1.0";
  out.plugins = {{"model", "model-gpt 0.1.0"}};
  out.layout = {{"tensor", 2}};
  out.config = {{"model.hidden", "32"}};
  out.content = all.take();
  out.mean_of = {"step-00000100"};
  out.data = {{{1200, "aa", SavedTokenizer{"bpe", 300, "dd"}}, {3400, "bb"}}, {{50, "cc"}}};
  return out;
}

class ManifestFile : public ::testing::Test {
 protected:
  Manifest read(const std::string& json) const {
    test::write_file(folder_ / "manifest.json", json);
    return read_manifest(folder_ / "manifest.json");
  }
  /// Of the manifest with one piece of its text replaced.
  std::string refusal(const std::string& from, const std::string& to) const {
    std::string json = to_json(manifest());
    const std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return test::error_of([&] { read(json.replace(at, from.size(), to)); });
  }
  test::TempFolder folder_;
};

TEST_F(ManifestFile, ReadsBackWhatIsWritten) {
  const Manifest written = manifest(), back = read(to_json(written));
  EXPECT_EQ(back.training, written.training);
  EXPECT_EQ(back.tokens, 102400);
  EXPECT_EQ(back.created, written.created);
  EXPECT_EQ(back.engine, "0.1.0");
  EXPECT_EQ(back.plugins, written.plugins);
  EXPECT_EQ(back.layout, written.layout);
  EXPECT_EQ(back.config, written.config);
  EXPECT_EQ(back.mean_of, written.mean_of);
  EXPECT_EQ(back.data.training, written.data.training);
  EXPECT_EQ(back.data.validation, written.data.validation);
  ASSERT_EQ(back.content.files.size(), 2u);
  ASSERT_EQ(back.content.tensors.size(), 1u);
  ASSERT_EQ(back.content.tensors[0].pieces.size(), 2u);
  EXPECT_EQ(back.content.tensors[0].pieces[1].begin, (Shape{2, 0}));
  EXPECT_EQ(back.content.tensors[0].pieces[1].checksum, "bb");
  EXPECT_EQ(to_json(back), to_json(written));
}

/// As earlier versions wrote it.
TEST_F(ManifestFile, DataMayBeMissing) {
  Manifest written = manifest();
  written.data = {};
  const std::string json = to_json(written);
  EXPECT_THAT(json, ::testing::Not(HasSubstr("\"data\"")));
  EXPECT_TRUE(read(json).data.training.empty());
}

TEST_F(ManifestFile, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal("\"samples\": 1600", "\"samples\": 1601"), HasSubstr("manifest.json: checksum mismatch"));
  EXPECT_THAT(refusal("{", "["), HasSubstr("manifest.json: is not valid JSON"));
  EXPECT_THAT(
      refusal("\"step\": ", "\"x\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + ", \"step\": "),
      HasSubstr("manifest.json: is nested too deeply (more than "));
  EXPECT_THAT(refusal("triax-checkpoint", "other"), HasSubstr("format is not \"triax-checkpoint\""));
  EXPECT_THAT(refusal("\"version\": 1", "\"version\": 2"),
              HasSubstr("has version 2 of the format, but this program reads up to 1\n  use the version of Triax that "
                        "wrote it, or a later one"));
  EXPECT_THAT(refusal("\"samples\": 1600", "\"samples\": -1"),
              HasSubstr("training.samples is not a whole number of at least 0"));
  for (const char* count : {"samples", "optimizer_steps"})
    EXPECT_THAT(refusal(text("\"{}\": 1", count), text("\"{}\": 99999999999999", count)),
                HasSubstr(text("training.{} is too large", count)));
  for (const char* scale : {"-1", "0", "1e308"})
    EXPECT_THAT(refusal("\"loss_scale\": 32768.0", text("\"loss_scale\": {}", scale)),
                HasSubstr("training.loss_scale is not a positive fp32 number"));
  EXPECT_THAT(refusal("{", "\xef\xbb\xbf{"), HasSubstr("manifest.json: is not valid JSON"));
  EXPECT_THAT(refusal("\"tokens\": ", "\"tokens\": 7, \"tokens\": "),
              HasSubstr("manifest.json: has the key \"tokens\" twice"));
  EXPECT_THAT(refusal("\"samples\": 1600", "\"samples\": 1600, \"samples\": 1600"),
              HasSubstr("manifest.json: has the key \"samples\" twice"));
  EXPECT_THAT(refusal("\"tokens\": 102400", "\"tokens\": NaN"), HasSubstr("manifest.json: is not valid JSON at line "));
  EXPECT_THAT(refusal("\"tokens\": 102400", "\"tokens\": 99999999999999999999"),
              HasSubstr("manifest.json: has an integer that does not fit into 64 bits"));
  EXPECT_THAT(test::error_of([&] { read(to_json(manifest()) + "{}"); }), HasSubstr("manifest.json: is not valid JSON"));
  EXPECT_THAT(refusal("weights-1.safetensors\",\n     \"key\"", "weights-1.safetensors\\u0000x\",\n     \"key\""),
              HasSubstr("tensors[0].pieces[1].file is not a file's name"));
  EXPECT_THAT(refusal("\"step\"", "\"stop\""), HasSubstr("training has no \"step\""));
  EXPECT_THAT(refusal("\"F32\"", "\"F31\""), HasSubstr("tensors[0].dtype is not a type that this version knows"));
  EXPECT_THAT(refusal("weights-1.safetensors\",\n     \"key\"", "../x\",\n     \"key\""),
              HasSubstr("tensors[0].pieces[1].file is not a file's name"));
}

TEST_F(ManifestFile, RefusesATensorThatIsNotWhole) {
  Manifest less = manifest();
  less.content.tensors[0].pieces.pop_back();
  EXPECT_THAT(test::error_of([&] { read(to_json(less)); }),
              HasSubstr("the pieces of w (master) have 6 elements, but the tensor has 12"));
  Manifest overlapping = manifest();
  overlapping.content.tensors[0].pieces[1].begin[0] = 1; // rows 1 and 2, and row 3 is missing
  EXPECT_THAT(
      test::error_of([&] { read(to_json(overlapping)); }),
      HasSubstr(
          "the pieces of w (master) overlap: part of piece w (file weights-1.safetensors) is also in another piece"));
  Manifest outside = manifest();
  outside.content.tensors[0].pieces[1].begin[0] = 3;
  EXPECT_THAT(test::error_of([&] { read(to_json(outside)); }),
              HasSubstr("tensors[0].pieces[1] is not inside the tensor"));
}

TEST_F(ManifestFile, RefusesATensorThatIsListedTwiceOrInAnUnknownFile) {
  Manifest twice = manifest();
  twice.content.tensors.push_back(twice.content.tensors[0]);
  EXPECT_THAT(test::error_of([&] { read(to_json(twice)); }), HasSubstr("w (master) is listed twice"));
  Manifest unknown = manifest(); // its bytes would not be compared with a checksum
  unknown.content.files.pop_back();
  EXPECT_THAT(test::error_of([&] { read(to_json(unknown)); }),
              HasSubstr("w (master) has a piece in weights-1.safetensors, which is not in the list of files"));
}

TEST(SavedParts, OfRanksThatDescribeATensorDifferentlyAreRefused) {
  PartMerger all;
  all.add(part(0));
  SavedPart other = part(1);
  other.tensors[0].shape[0] = 5;
  EXPECT_THAT(test::error_of([&] { all.add(other); }),
              HasSubstr("ranks describe w (master) differently: f32[4, 3] and f32[5, 3]"));
}

TEST(SavedParts, TravelAsText) {
  const SavedPart back = part_from_json(to_json(part(1)), "rank 1");
  EXPECT_EQ(back.files[0].name, "weights-1.safetensors");
  EXPECT_EQ(back.tensors[0].pieces[0].begin, (Shape{2, 0}));
  EXPECT_THAT(test::error_of([] { part_from_json("{", "rank 1"); }), HasSubstr("rank 1: is not valid JSON"));
}

} // namespace
} // namespace triax::checkpoint
