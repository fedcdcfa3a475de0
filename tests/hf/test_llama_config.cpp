// SPDX-License-Identifier: Apache-2.0
// config.json of the architectures that model-llama knows: defaults, keys of earlier versions, refusals, and which
// architecture an export has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf/json_file.hpp"
#include "reference_model.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LlamaConfig : public ::testing::Test {
 protected:
  OptionTexts read(const std::string& architecture, const std::string& json) {
    test::write_file(folder_ / kConfigFile, json);
    refused_.clear();
    Refusals refusals;
    OptionTexts out = options_of(read_model_config(folder_.path()), *plugin_.find(architecture),
                                 {plugin_.name, plugin_.rows}, refusals);
    for (const Refusal& refusal : refusals) {
      refused_.push_back(refusal.message.substr(refusal.message.rfind("json: ") + 6));
      hint_ = refusal.hint;
    }
    return out;
  }

  const MappedPlugin plugin_ = mapped_plugin("model-llama", search_folders_after({}));
  const test::TempFolder folder_;
  std::vector<std::string> refused_;
  std::string hint_; // of the last
};

/// Of LlamaConfig, MistralConfig, Qwen2Config and Qwen3Config of transformers.
TEST_F(LlamaConfig, AbsentKeysHaveTheValuesOfTransformers) {
  const OptionTexts of_all = {{"layers", "32"},        {"heads", "32"},       {"hidden", "4096"},
                              {"tied", "false"},       {"norm_eps", "1e-06"}, {"rope_theta", "10000.0"},
                              {"rope_scaling", "none"}};
  struct Architecture {
    const char *name, *json;
    OptionTexts options;
  };
  const Architecture architectures[] = {{"LlamaForCausalLM",
                                         "{}",
                                         {{"vocab", "32000"},
                                          {"inner", "11008"},
                                          {"sequence", "2048"},
                                          {"kv_heads", "0"},
                                          {"head_size", "0"},
                                          {"qkv_bias", "false"},
                                          {"qk_norm", "false"}}},
                                        {"MistralForCausalLM",
                                         R"({"sliding_window": null})",
                                         {{"vocab", "32000"},
                                          {"inner", "14336"},
                                          {"sequence", "131072"},
                                          {"kv_heads", "8"},
                                          {"head_size", "0"},
                                          {"qkv_bias", "false"},
                                          {"qk_norm", "false"}}},
                                        {"Qwen2ForCausalLM",
                                         "{}",
                                         {{"vocab", "151936"},
                                          {"inner", "22016"},
                                          {"sequence", "32768"},
                                          {"kv_heads", "32"},
                                          {"head_size", "0"},
                                          {"qkv_bias", "true"},
                                          {"qk_norm", "false"}}},
                                        {"Qwen3ForCausalLM",
                                         "{}",
                                         {{"vocab", "151936"},
                                          {"inner", "22016"},
                                          {"sequence", "32768"},
                                          {"kv_heads", "32"},
                                          {"head_size", "128"},
                                          {"qkv_bias", "false"},
                                          {"qk_norm", "true"}}}};
  for (const Architecture& architecture : architectures) {
    OptionTexts expected = of_all;
    expected.insert(architecture.options.begin(), architecture.options.end());
    EXPECT_EQ(read(architecture.name, architecture.json), expected) << architecture.name;
    EXPECT_THAT(refused_, IsEmpty()) << architecture.name;
  }
}

TEST_F(LlamaConfig, ReadsKeysOfVersion4) {
  const OptionTexts options =
      read("LlamaForCausalLM", R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3",
    "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})");
  EXPECT_THAT(refused_, IsEmpty());
  EXPECT_EQ(options.at("rope_theta"), "500000.0");
  EXPECT_EQ(options.at("rope_scaling"), "llama3");
  EXPECT_EQ(options.at("rope_factor"), "32.0");
  EXPECT_EQ(options.at("rope_original_sequence"), "8192");
  EXPECT_EQ(read("LlamaForCausalLM", R"({"rope_theta": 1e4, "rope_scaling": null})").at("rope_scaling"), "none");
  EXPECT_THAT(refused_, IsEmpty());
}

TEST_F(LlamaConfig, KeysThatChangeNothingAreIgnored) {
  for (const char* key : {"pretraining_tp", "is_llama_config", "max_sequence_length"}) {
    read("LlamaForCausalLM", text(R"({"{}": true})", key));
    EXPECT_THAT(refused_, IsEmpty()) << key;
  }
}

/// Models that embed texts, such as gte-Qwen2, are of these architectures. Each of their tokens depends on all others.
TEST_F(LlamaConfig, RefusesAttentionToLaterPositions) {
  for (const char* architecture : {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    read(architecture, R"({"is_causal": false})");
    EXPECT_THAT(refused_, ElementsAre("is_causal = false is not supported by model-llama, which has true"));
    for (const char* value : {"true", "null"}) {
      read(architecture, text(R"({"is_causal": {}})", value));
      EXPECT_THAT(refused_, IsEmpty()) << value;
    }
  }
}

TEST_F(LlamaConfig, RefusesOtherBlocksKeyByKey) {
  read("LlamaForCausalLM", R"({"attention_bias": true, "mlp_bias": true, "hidden_act": "gelu", "attention_dropout": 0.1,
    "rope_parameters": {"rope_type": "yarn", "factor": 4}})");
  EXPECT_THAT(
      refused_,
      UnorderedElementsAre(
          HasSubstr("attention_bias = true is not supported by model-llama, which has false"),
          HasSubstr("mlp_bias = true is not supported by model-llama, which has false"),
          HasSubstr("hidden_act = \"gelu\" is not supported by model-llama, which has \"silu\""),
          HasSubstr("attention_dropout = 0.1 is not supported by model-llama, which has 0.0"),
          HasSubstr("rope_type = \"yarn\" is not supported by model-llama, which has \"default\" or \"llama3\"")));
  read("LlamaForCausalLM", R"({"rope_scaling": {"type": "linear", "factor": 2.0}})");
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("rope_scaling.type = \"linear\" is not supported")));
  read("LlamaForCausalLM", R"({"rope_scaling": {"factor": 2.0}})");
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("rope_scaling.factor = 2.0 needs rope_scaling.rope_type, which is "
                                              "missing")));
  read("LlamaForCausalLM", R"({"rope_parameters": {"rope_type": "llama3", "factor": 2.0}})");
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("low_freq_factor is missing"), HasSubstr("high_freq_factor is missing"),
                                    HasSubstr("original_max_position_embeddings is missing")));
}

TEST_F(LlamaConfig, RefusesSlidingWindows) {
  read("MistralForCausalLM", "{}"); // 4096
  EXPECT_THAT(refused_,
              ElementsAre("sliding_window is missing, and its default 4096 is not supported by model-llama, which has "
                          "null"));
  read("MistralForCausalLM", R"({"sliding_window": 4096})");
  EXPECT_THAT(refused_, ElementsAre("sliding_window = 4096 is not supported by model-llama, which has null"));
  EXPECT_THAT(hint_, HasSubstr("set sliding_window to null and max_position_embeddings to the window's length"));
  for (const char* qwen : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    read(qwen, R"({"use_sliding_window": true, "sliding_window": 4096, "max_window_layers": 1})");
    EXPECT_THAT(refused_,
                ElementsAre(HasSubstr("use_sliding_window = true is not supported by model-llama, which has false")));
    for (const char* types : {"null", "[]", R"(["full_attention", "full_attention"])"}) {
      read(qwen, text(R"({"use_sliding_window": false, "sliding_window": 4096, "layer_types": {}})", types));
      EXPECT_THAT(refused_, IsEmpty()) << types;
    }
    read(qwen, R"({"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]})");
    EXPECT_THAT(refused_,
                ElementsAre("layer_types[1] = \"sliding_attention\" is not supported by model-llama, which has "
                            "\"full_attention\""));
    read(qwen, R"({"layer_types": "full_attention"})");
    EXPECT_THAT(refused_, ElementsAre("layer_types = \"full_attention\" is not a list"));
  }
}

std::string exported_architecture(const std::filesystem::path& folder) {
  return read_json_file(folder / kConfigFile, 1 << 20)["architectures"][0].get<std::string>();
}

/// Llama and Mistral have the same layers.
TEST(LlamaExport, HasTheArchitectureThatTheWeightsCameFrom) {
  const test::TempFolder folder;
  import_model(reference("mistral-grouped"), folder / "imported");
  export_model(folder / "imported", {.folder = folder / "same"});
  EXPECT_EQ(exported_architecture(folder / "same"), "MistralForCausalLM");
  export_model(folder / "imported", {.folder = folder / "other", .architecture = "LlamaForCausalLM"});
  EXPECT_EQ(exported_architecture(folder / "other"), "LlamaForCausalLM");
  EXPECT_EQ(tensors_in(folder / "other"), tensors_in(reference("mistral-grouped")));
  EXPECT_THAT(test::error_of([&] {
                export_model(folder / "imported", {.folder = folder / "biased", .architecture = "Qwen2ForCausalLM"});
              }),
              HasSubstr("model.qkv_bias = false cannot be stored as Qwen2ForCausalLM, which has true"));
}

/// Copies a reference with changes of its config.json.
void write_changed(const std::string& name, const std::filesystem::path& folder, const Json& changes) {
  std::filesystem::copy(reference(name), folder);
  Json json = read_json_file(reference(name) / kConfigFile, 1 << 20);
  json.merge_patch(changes); // null removes a key
  std::filesystem::remove(folder / kConfigFile);
  test::write_file(folder / kConfigFile, json.dump());
}

/// The first refusal of a changed reference.
std::string import_error(const std::string& name, const Json& changes) {
  const test::TempFolder folder;
  write_changed(name, folder / "model", changes);
  return test::error_of([&] { import_model(folder / "model", folder / "imported"); });
}

/// transformers refuses such a file, too.
TEST(LlamaImport, NeedsAListElementForEachBlock) {
  constexpr const char* kFull = "full_attention";
  EXPECT_THAT(import_error("qwen2-biased", {{"layer_types", {kFull, kFull, kFull}}}),
              HasSubstr("config.json: layer_types has 3 elements, but the model has 2 blocks"));
  EXPECT_THAT(import_error("qwen2-biased", {{"layer_types", Json::array()}}), HasSubstr("layer_types has 0 elements"));
  EXPECT_EQ(import_error("qwen2-biased", {{"layer_types", nullptr}}), "no error");
}

TEST(LlamaImport, NamesTheSizesThatTheFileDoesNotSet) {
  EXPECT_THAT(import_error("llama-scaled", {{"num_attention_heads", nullptr}}),
              AllOf(HasSubstr("config.json, model-llama, parameters(): "), HasSubstr("got 20 and 32"),
                    HasSubstr("; num_attention_heads is not set: its default is 32")));
  EXPECT_THAT(
      import_error("llama-scaled", {{"intermediate_size", nullptr}}),
      AllOf(HasSubstr("config.json asks for "), HasSubstr("intermediate_size is not set: its default is 11008")));
}

/// A folder of llama-scaled with 8 heads of 4 columns in place of 4 of 8: 20 columns between blocks are not divisible.
void write_indivisible(const std::filesystem::path& folder, const char* architecture, const char* model_type) {
  std::filesystem::create_directory(folder);
  std::filesystem::copy(reference("llama-scaled") / kSingleFile, folder);
  Json json = read_json_file(reference("llama-scaled") / kConfigFile, 1 << 20);
  json["architectures"] = Json::array({architecture});
  json["model_type"] = model_type;
  json["num_attention_heads"] = 8;
  json["num_key_value_heads"] = 4;
  json["head_dim"] = 4;
  json["sliding_window"] = nullptr;
  json.erase("pretraining_tp"); // a key of LlamaConfig
  test::write_file(folder / kConfigFile, json.dump());
}

/// LlamaConfig of version 5 of transformers refuses such sizes. That of version 4 and MistralConfig take them.
TEST(LlamaExport, OfAnIndivisibleHiddenSizeIsAMistral) {
  const test::TempFolder folder;
  constexpr const char* kRefusal =
      "LlamaForCausalLM of transformers must have a hidden size that is divisible by the number of heads, got 20 and 8";
  write_indivisible(folder / "llama", "LlamaForCausalLM", "llama");
  import_model(folder / "llama", folder / "earlier");
  const ExportedModel made = export_model(folder / "earlier", {.folder = folder / "as-mistral"});
  EXPECT_EQ(exported_architecture(folder / "as-mistral"), "MistralForCausalLM");
  EXPECT_THAT(made.notes, ElementsAre(AllOf(HasSubstr("Exported as MistralForCausalLM: "), HasSubstr(kRefusal))));
  EXPECT_EQ(tensors_in(folder / "as-mistral"), tensors_in(folder / "llama"));
  write_indivisible(folder / "mistral", "MistralForCausalLM", "mistral");
  import_model(folder / "mistral", folder / "imported");
  EXPECT_THAT(test::error_of([&] {
                export_model(folder / "imported", {.folder = folder / "x", .architecture = "LlamaForCausalLM"});
              }),
              HasSubstr(kRefusal));
  std::filesystem::remove_all(folder / "imported/hf"); // as a run's own checkpoint, whose first architecture is Llama
  export_model(folder / "imported", {.folder = folder / "exported"});
  EXPECT_EQ(exported_architecture(folder / "exported"), "MistralForCausalLM");
  EXPECT_EQ(tensors_in(folder / "exported"), tensors_in(folder / "mistral"));
}

/// The notes of an export whose imported model is not found: null ids would end no text, without a reason.
TEST(LlamaExport, NotesAModelThatIsNotFound) {
  const test::TempFolder folder;
  import_model(reference("llama-tied"), folder / "first");
  import_model(reference("llama-tied"), folder / "second");
  std::filesystem::remove_all(folder / "second/hf"); // as a run's own checkpoint
  int exports = 0;
  const auto notes = [&](const std::filesystem::path& from) {
    const std::filesystem::path file = folder / "second" / checkpoint::kManifestFile;
    checkpoint::Manifest manifest = checkpoint::read_manifest(file);
    manifest.config["checkpoint.from"] = "\"" + from.string() + "\"";
    test::write_file(file, checkpoint::to_json(manifest));
    return export_model(folder / "second", {.folder = folder / std::to_string(exports++)}).notes;
  };
  EXPECT_THAT(notes(folder / "first"), IsEmpty());
  EXPECT_THAT(notes(folder / "second"), ElementsAre(HasSubstr("does not lead to the checkpoint of a first run")));
  EXPECT_THAT(notes(folder / "removed"), ElementsAre(HasSubstr("removed/manifest.json: does not exist")));
  test::write_file(folder / "first/hf" / kConfigFile, R"({"architectures": ["GPT2LMHeadModel"]})");
  EXPECT_THAT(notes(folder / "first"), ElementsAre(HasSubstr("model-llama does not have its architecture")));
  test::write_file(folder / "first/hf" / kConfigFile, "{");
  EXPECT_THAT(notes(folder / "first"), ElementsAre(HasSubstr("config.json: is not valid JSON")));
}

/// Exports a model, and imports it again.
Json exported_config(const std::string& name) {
  const test::TempFolder folder;
  import_model(reference(name), folder / "imported");
  export_model(folder / "imported", {.folder = folder / "exported"});
  import_model(folder / "exported", folder / "again");
  const auto config_of = [](const std::filesystem::path& checkpoint) {
    return checkpoint::read_manifest(checkpoint / checkpoint::kManifestFile).config;
  };
  EXPECT_EQ(config_of(folder / "imported"), config_of(folder / "again")) << name;
  return read_json_file(folder / "exported" / kConfigFile, 1 << 20);
}

/// Programs that know only version 4 would compute with theta 10000 and no scaling, without an error.
TEST(LlamaExport, WritesTheKeysOfVersion4) {
  const Json scaled = exported_config("llama-scaled");
  EXPECT_EQ(scaled["rope_theta"], scaled["rope_parameters"]["rope_theta"]);
  Json scaling = scaled["rope_parameters"];
  scaling.erase("rope_theta");
  EXPECT_EQ(scaling["rope_type"], "llama3");
  EXPECT_EQ(scaled["rope_scaling"], scaling);
  const Json other_base = exported_config("qwen2-biased");
  EXPECT_EQ(other_base["rope_theta"], 1e6);
  EXPECT_FALSE(other_base.contains("rope_scaling")); // early versions refuse the type "default"
  EXPECT_FALSE(exported_config("qwen3-normed").contains("rope_theta"));
}

/// Llama 3.1's files and those of earlier versions give the same checkpoint.
TEST(LlamaImport, TakesConfigurationsOfVersion4) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "old");
  std::filesystem::copy(reference("llama-scaled") / kSingleFile, folder / "old");
  Json json = read_json_file(reference("llama-scaled") / kConfigFile, 1 << 20);
  json["rope_scaling"] = json["rope_parameters"];
  json["rope_theta"] = json["rope_scaling"]["rope_theta"];
  json["rope_scaling"].erase("rope_theta");
  json.erase("rope_parameters");
  test::write_file(folder / "old" / kConfigFile, json.dump());
  import_model(folder / "old", folder / "imported");
  import_model(reference("llama-scaled"), folder / "now");
  export_model(folder / "imported", {.folder = folder / "exported"});
  const ModelConfig before = read_model_config(reference("llama-scaled")),
                    after = read_model_config(folder / "exported");
  for (const auto& [key, value] : before.values)
    if (key.starts_with("rope_parameters.")) {
      EXPECT_EQ(after.values.at(key), value) << key;
    }
  EXPECT_EQ(weights_in(folder / "imported"), weights_in(folder / "now"));
}

} // namespace
} // namespace triax::hf
