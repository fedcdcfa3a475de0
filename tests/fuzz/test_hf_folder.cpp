// SPDX-License-Identifier: Apache-2.0
// Model folders of Hugging Face transformers with random changes of config.json, the index and the shards are read, or
// refused with a message. Useful mainly under sanitizers.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "changed_bytes.hpp"
#include "hf/mapped_model.hpp"
#include "hf/model_config.hpp"
#include "hf/model_tensors.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"
#include "triax/plugin.hpp"

namespace triax::hf {
namespace {

constexpr const char* kGoodConfig =
    R"({"architectures": ["A"], "model_type": "a", "vocab_size": 7, "rope": {"theta": 1e4, "type": "none"},
"act": "gelu", "tied": true, "bos_token_id": 3})";
constexpr const char* kGoodIndex =
    R"({"metadata": {"total_size": 20}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})";

OptionRows fuzz_rows() {
  OptionRows out;
  for (const triax_option& row :
       {option_int("vocab", nullptr, 1, 1000, "doc"), option_float("base", "1", 1, 1e9, "doc"),
        option_string("scaling", "none", "none|other", "doc"), option_bool("tied", "false", "doc")})
    out[row.name] = row;
  return out;
}

HfArchitecture fuzz_architecture() {
  return {.name = "A",
          .model_type = "a",
          .keys = {{.key = "vocab_size", .option = "vocab"},
                   {.key = "rope.theta", .option = "base", .absent = "1.0"},
                   {.key = "rope.type", .option = "scaling", .absent = "\"none\""},
                   {.key = "tied", .option = "tied", .absent = "false"},
                   {.key = "act", .absent = "null", .values = {{"\"gelu\"", ""}}}}};
}

/// Truncating and rewriting a file flushes it on ext4; a new file is faster.
void replace_file(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::remove(file);
  test::write_file(file, bytes);
}

using OptionValues = std::map<std::string, OptionValue>;

/// With the defaults of the others.
OptionValues values_of(const OptionTexts& texts, const OptionRows& rows) {
  OptionValues out;
  for (const auto& [name, row] : rows)
    if (const auto found = texts.find(name); found != texts.end() || row.default_value)
      out[name] = plugin::parse_option(row, found != texts.end() ? found->second : row.default_value);
  return out;
}

/// Round trip: an accepted config that the architecture can store, written back, is accepted again.
bool config_accepted(const test::TempFolder& folder, const std::string& json, const HfArchitecture& architecture,
                     const OptionRows& rows) {
  replace_file(folder / kConfigFile, json);
  Refusals refusals;
  try {
    const ConfigReader reader{"model-x", rows};
    OptionTexts options = options_of(read_model_config(folder.path()), architecture, reader, refusals);
    for (const Refusal& refusal : refusals) EXPECT_FALSE(refusal.message.empty());
    if (!refusals.empty()) return false;
    for (const auto& [name, row] : rows)
      if (row.default_value) options.try_emplace(name, row.default_value);
    const auto values = config_of(options, {}, architecture, rows, "options", refusals);
    if (!refusals.empty()) return true;
    replace_file(folder / kConfigFile, config_text(architecture, values, "float32", folder / kConfigFile));
    const OptionTexts again = options_of(read_model_config(folder.path()), architecture, reader, refusals);
    EXPECT_TRUE(refusals.empty()) << refusals.front().message;
    EXPECT_EQ(values_of(again, rows), values_of(options, rows));
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

bool config_accepted(const test::TempFolder& folder, const std::string& json) {
  return config_accepted(folder, json, fuzz_architecture(), fuzz_rows());
}

/// Reads all tensors of the folder.
bool tensors_accepted(const test::TempFolder& folder) {
  try {
    const ModelTensors all(folder.path());
    for (const auto& [name, tensor] : all.all()) {
      std::vector<std::byte> bytes(tensor.entry.bytes());
      all.read(tensor, 0, bytes);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

std::string shard_with(const std::string& name, const Shape& shape) {
  std::vector<checkpoint::TensorEntry> entries = {{name, DType::f32, shape, 0}};
  const std::string header = checkpoint::make_header(entries);
  return header + std::string(entries.front().bytes(), 'x');
}

void write_good_shards(const test::TempFolder& folder) {
  test::write_file(folder / "one.safetensors", shard_with("a", {3}));
  test::write_file(folder / "two.safetensors", shard_with("b", {1, 2}));
}

TEST(Fuzz, ReadsOrRefusesChangedModelConfigs) {
  const test::TempFolder folder;
  ASSERT_TRUE(config_accepted(folder, kGoodConfig));
  std::mt19937_64 random(51);
  int accepted = 0;
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string changed = kGoodConfig;
    if (round % 2) test::change_some(changed, random);
    if (round % 2 == 0) test::change_json(changed, random);
    accepted += config_accepted(folder, changed);
    if (HasFailure()) FAIL() << "round " << round << ": " << changed;
  }
  EXPECT_GT(accepted, 0); // some changes affect no key that is read
  EXPECT_LT(accepted, kRounds / 2);
  EXPECT_FALSE(config_accepted(folder, std::string(1'000'000, '[')));
}

/// The tables of the plugins, with a model of each architecture.
TEST(Fuzz, ReadsOrRefusesChangedModelConfigsOfOurPlugins) {
  const test::TempFolder folder;
  std::mt19937_64 random(52);
  for (const auto& [name, seed] : std::multimap<std::string, std::string>{{"model-gpt", "gpt2-odd"},
                                                                          {"model-llama", "llama-scaled"},
                                                                          {"model-llama", "llama-tied"},
                                                                          {"model-llama", "mistral-grouped"},
                                                                          {"model-llama", "qwen2-biased"},
                                                                          {"model-llama", "qwen3-normed"}}) {
    SCOPED_TRACE(seed);
    const MappedPlugin plugin = mapped_plugin(name, search_folders_after({}));
    const std::string good = test::read_file(TRIAX_SOURCE_DIR "/tests/hf/reference/" + seed + "/config.json");
    const auto architecture = nlohmann::json::parse(good)["architectures"][0].get<std::string>();
    ASSERT_TRUE(config_accepted(folder, good, *plugin.find(architecture), plugin.rows));
    int accepted = 0;
    constexpr int kRounds = 300;
    for (int round = 0; round < kRounds; ++round) {
      std::string changed = good;
      if (round % 2) test::change_some(changed, random);
      if (round % 2 == 0) test::change_json(changed, random);
      accepted += config_accepted(folder, changed, *plugin.find(architecture), plugin.rows);
      if (HasFailure()) FAIL() << "round " << round << ": " << changed;
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, kRounds);
  }
}

TEST(Fuzz, ReadsOrRefusesChangedIndexesAndShards) {
  const test::TempFolder folder;
  write_good_shards(folder);
  test::write_file(folder / kIndexFile, kGoodIndex);
  ASSERT_TRUE(tensors_accepted(folder));
  std::mt19937_64 random(52);
  int accepted = 0;
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string index = kGoodIndex, shard = shard_with("b", {1, 2});
    if (round % 3 == 0) test::change_some(index, random);
    if (round % 3 == 1) test::change_json(index, random);
    if (round % 3 == 2) test::change_some(shard, random);
    replace_file(folder / kIndexFile, index);
    replace_file(folder / "two.safetensors", shard);
    accepted += tensors_accepted(folder);
    if (HasFailure()) FAIL() << "round " << round << ": " << index;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds / 2);
}

} // namespace
} // namespace triax::hf
