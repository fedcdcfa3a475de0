// SPDX-License-Identifier: Apache-2.0
// Export after import, and import after export, keep all bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/blocks.hpp"
#include "hf/json_file.hpp"
#include "reference_model.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RoundTrip : public ::testing::TestWithParam<const char*> {
 protected:
  RoundTrip() { import_model(reference(GetParam()), imported_); }
  const test::TempFolder folder_;
  const std::filesystem::path imported_ = folder_ / "imported", exported_ = folder_ / "exported",
                              again_ = folder_ / "again";
};

/// As transformers and the hub's own tools write. `triax export hf` shows it as its default.
TEST(ExportDefaults, ShardsHaveAtMostFiveGigabytes) {
  EXPECT_EQ(ExportRequest{}.shard_bytes, 5'000'000'000U);
}

TEST_P(RoundTrip, KeepsAllBits) {
  const ExportedModel made = export_model(imported_, {.folder = exported_});
  EXPECT_EQ(made.shards, 1u);
  EXPECT_EQ(tensors_in(exported_), tensors_in(reference(GetParam())));
  import_model(exported_, again_);
  EXPECT_EQ(weights_in(again_), weights_in(imported_));
}

TEST_P(RoundTrip, KeepsAllBitsInShards) {
  const ExportedModel made = export_model(imported_, {.folder = exported_, .shard_bytes = 1000});
  EXPECT_GT(made.shards, 3u);
  EXPECT_EQ(tensors_in(exported_), tensors_in(reference(GetParam())));
  const Json index = read_json_file(exported_ / kIndexFile, 1 << 20);
  EXPECT_EQ(index["metadata"]["total_size"], made.bytes);
  for (const auto& entry : std::filesystem::directory_iterator(exported_))
    if (entry.path().extension() == ".safetensors") {
      const os::InputFile file(entry.path());
      const auto header = checkpoint::read_header(file, entry.path());
      EXPECT_TRUE(header.entries.size() == 1 || file.bytes() - header.bytes <= 1000) << entry.path();
    }
  import_model(exported_, again_);
  EXPECT_EQ(weights_in(again_), weights_in(imported_));
}

/// Every key of the reference that the model depends on is written with the same value.
TEST_P(RoundTrip, KeepsTheConfiguration) {
  export_model(imported_, {.folder = exported_});
  const ModelConfig before = read_model_config(reference(GetParam())), after = read_model_config(exported_);
  EXPECT_EQ(after.architectures, before.architectures);
  EXPECT_EQ(after.model_type, before.model_type);
  for (const auto& [key, json] : before.values) {
    if (key == "dtype" || key == "transformers_version") continue;
    if (key == "activation_function") continue; // gelu_pytorch_tanh is another name of gelu_new
    ASSERT_TRUE(after.values.contains(key)) << key;
    EXPECT_EQ(after.values.at(key), json) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RoundTrip, ::testing::ValuesIn(kReferences), test_name);

TEST(Import, CarriesOtherFilesAlong) {
  const test::TempFolder folder;
  const ImportedModel made = import_model(reference("gpt2-odd"), folder / "imported");
  EXPECT_THAT(made.files, ElementsAre("special_tokens_map.json", "generation_config.json"));
  EXPECT_THAT(export_model(folder / "imported", {.folder = folder / "exported"}).files,
              ElementsAre(made.files[0], made.files[1]));
  for (const std::string& file : made.files)
    EXPECT_EQ(test::read_file(folder / "exported" / file), test::read_file(reference("gpt2-odd") / file));
  std::filesystem::create_directory(folder / "files");
  test::write_file(folder / "files/tokenizer.json", "{}");
  EXPECT_THAT(export_model(folder / "imported", {.folder = folder / "other", .files = folder / "files"}).files,
              ElementsAre("tokenizer.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "other/special_tokens_map.json"));
}

TEST(Import, CarriesEveryFileOfATokenizerAlong) {
  const test::TempFolder folder;
  std::filesystem::copy(reference("gpt2-inner"), folder / "model");
  for (const char* name :
       {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "tokenizer.model", "added_tokens.json",
        "special_tokens_map.json", "chat_template.jinja", "chat_template.json", "generation_config.json"})
    test::write_file(folder / "model" / name, text("{} of the model\n", name));
  const std::vector<std::string> carried = import_model(folder / "model", folder / "imported").files;
  EXPECT_EQ(carried.size(), 10u);
  EXPECT_EQ(export_model(folder / "imported", {.folder = folder / "exported"}).files, carried);
  for (const std::string& name : carried)
    EXPECT_EQ(test::read_file(folder / "exported" / name), name + " of the model\n");
}

/// 16-bit weights are widened, and are the same after rounding again.
TEST(Import, WidensSixteenBits) {
  const test::TempFolder folder;
  import_model(reference("gpt2-odd"), folder / "imported");
  for (const DType type : {DType::bf16, DType::f16}) {
    const std::string name(name_of(type));
    export_model(folder / "imported", {.folder = folder / name, .dtype = type});
    import_model(folder / name, folder / (name + "-again"));
    export_model(folder / (name + "-again"), {.folder = folder / (name + "-twice"), .dtype = type});
    EXPECT_EQ(tensors_in(folder / (name + "-twice")), tensors_in(folder / name));
    const ModelTensors half(folder / name);
    EXPECT_EQ(half.all().at("transformer.wte.weight").entry.dtype, type);
  }
}

/// Files of the base model have no prefix, and may have the masks and the head, which repeat.
TEST(Import, TakesNamesWithoutThePrefixAndCopies) {
  const test::TempFolder folder;
  const auto tensors = tensors_in(reference("gpt2-sharded"));
  const ModelTensors shapes(reference("gpt2-sharded"));
  const auto write = [&](const std::string& to, bool change_head) {
    std::filesystem::create_directory(folder / to);
    std::filesystem::copy(reference("gpt2-sharded") / "config.json", folder / to);
    std::vector<checkpoint::TensorEntry> entries;
    std::vector<std::vector<std::byte>> data;
    for (const auto& [name, bytes] : tensors) {
      entries.push_back({name.substr(std::strlen("transformer.")), DType::f32, shapes.all().at(name).entry.shape, 0});
      data.push_back(bytes);
    }
    entries.push_back({"lm_head.weight", DType::f32, {37, 8}, 0});
    data.push_back(tensors.at("transformer.wte.weight"));
    if (change_head) data.back().back() ^= std::byte{1};
    entries.push_back({"h.0.attn.bias", DType::u8, {1, 1, 9, 9}, 0});
    data.emplace_back(81);
    std::string file = checkpoint::make_header(entries);
    for (const auto& bytes : data) file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    test::write_file(folder / to / kSingleFile, file);
  };
  write("plain", false);
  import_model(folder / "plain", folder / "imported");
  export_model(folder / "imported", {.folder = folder / "exported"});
  EXPECT_EQ(tensors_in(folder / "exported"), tensors);
  write("untied", true);
  EXPECT_THAT(error_of([&] { import_model(folder / "untied", folder / "other"); }),
              HasSubstr("tensor \"lm_head.weight\" differs from \"wte.weight\""));
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  EXPECT_FALSE(std::filesystem::exists(folder / "other.toml"));
}

TEST(Export, LeavesNothingBehindIfItFails) {
  const test::TempFolder folder;
  import_model(reference("gpt2-odd"), folder / "imported");
  std::string weights = test::read_file(folder / "imported/weights-00000.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  test::write_file(folder / "imported/weights-00000.safetensors", weights);
  EXPECT_THAT(error_of([&] { export_model(folder / "imported", {.folder = folder / "exported"}); }),
              HasSubstr("checksum mismatch"));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("imported", "imported.toml"));
}

} // namespace
} // namespace triax::hf
