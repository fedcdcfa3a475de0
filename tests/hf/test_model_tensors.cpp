// SPDX-License-Identifier: Apache-2.0
// Files of weights: what is read, and what is refused without being opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "reference_model.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::HasSubstr;

class Tensors : public ::testing::Test {
 protected:
  /// A copy of the sharded reference.
  Tensors() { std::filesystem::copy(reference("gpt2-sharded"), folder_.path()); }

  std::string refusal() {
    return error_of([&] { ModelTensors{folder_.path()}; });
  }
  void change_index(const std::string& from, const std::string& to) {
    std::string index = test::read_file(folder_ / kIndexFile);
    index.replace(index.find(from), from.size(), to);
    test::write_file(folder_ / kIndexFile, index);
  }
  test::TempFolder folder_;
};

TEST_F(Tensors, ReadsShards) {
  const ModelTensors all(folder_.path());
  EXPECT_EQ(all.all().size(), 40u); // 2 tables, 12 tensors in each of 3 blocks, 2 of the last norm
  EXPECT_EQ(all.all().at("transformer.wte.weight").entry.shape, (Shape{37, 8}));
}

TEST_F(Tensors, RefusesAnIndexThatContradictsTheShards) {
  change_index("\"transformer.h.0.attn.c_attn.bias\"", "\"transformer.h.0.attn.other\"");
  EXPECT_THAT(refusal(), HasSubstr("is in this file, but the index does not name it"));
}

TEST_F(Tensors, RefusesATensorInAnotherShard) {
  change_index("\"transformer.wte.weight\": \"model-00001", "\"transformer.wte.weight\": \"model-00002");
  EXPECT_THAT(refusal(), HasSubstr("the index names model-00002-of-00004.safetensors for it"));
}

TEST_F(Tensors, ShortensNamesInMessages) {
  const std::string name(100'000, 'x');
  change_index("\"transformer.wte.weight\": \"model-00001", "\"transformer.wte.weight\": \"" + name);
  EXPECT_LT(refusal().size(), 2000u) << refusal();
}

TEST_F(Tensors, RefusesNamesThatLeaveTheFolder) {
  change_index("model-00001-of-00004.safetensors", "../model-00001-of-00004.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("which is not a safetensors file of the folder"));
}

TEST_F(Tensors, RefusesAMissingShard) {
  std::filesystem::remove(folder_ / "model-00003-of-00004.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("names the file model-00003-of-00004.safetensors, which does not exist"));
}

TEST_F(Tensors, RefusesPickledShards) {
  change_index("model-00001-of-00004.safetensors", "pytorch_model-00001-of-00004.bin");
  EXPECT_THAT(refusal(), HasSubstr("pytorch_model-00001-of-00004.bin is a pickled file"));
}

TEST_F(Tensors, RefusesASecondSetOfWeights) {
  test::write_file(folder_ / kSingleFile, "");
  EXPECT_THAT(refusal(), HasSubstr("has both model.safetensors and model.safetensors.index.json"));
}

TEST_F(Tensors, FollowsLinksToFilesOnly) {
  const std::filesystem::path shard = folder_ / "model-00001-of-00004.safetensors";
  std::filesystem::rename(shard, folder_ / "blob"); // as in the cache of the hub
  std::filesystem::create_symlink("blob", shard);
  EXPECT_EQ(refusal(), "no error");
  std::filesystem::remove(shard);
  std::filesystem::create_symlink("/dev/zero", shard);
  EXPECT_THAT(refusal(), HasSubstr("model-00001-of-00004.safetensors"));
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
}

} // namespace
} // namespace triax::hf
