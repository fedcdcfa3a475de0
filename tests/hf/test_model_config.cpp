// SPDX-License-Identifier: Apache-2.0
// Translation of config.json to options and back, with tables like those of the Llama family.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hf/model_config.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/plugin.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

OptionRows llama_rows() {
  OptionRows out;
  for (const triax_option& row :
       {option_int("vocab", nullptr, 1, 1e6, "doc"), option_int("heads", nullptr, 1, 64, "doc"),
        option_int("kv_heads", "0", 0, 64, "doc"), option_bool("tied", "false", "doc"),
        option_bool("qkv_bias", "false", "doc"), option_float("rope_base", "1e4", 1, 1e9, "doc"),
        option_string("rope_scaling", "none", "none|llama3", "doc")})
    out[row.name] = row;
  return out;
}

HfArchitecture llama() {
  return {.name = "LlamaForCausalLM",
          .model_type = "llama",
          .keys = {{.key = "vocab_size", .option = "vocab"},
                   {.key = "num_attention_heads", .option = "heads", .absent = "32"},
                   {.key = "num_key_value_heads", .option = "kv_heads", .absent = "null", .values = {{"null", "0"}}},
                   {.key = "tie_word_embeddings", .option = "tied", .absent = "false"},
                   {.key = "rope_parameters.rope_theta", .option = "rope_base", .absent = "10000.0"},
                   {.key = "rope_theta", .option = "rope_base", .alternative = true},
                   {.key = "rope_parameters.rope_type",
                    .option = "rope_scaling",
                    .absent = "\"default\"",
                    .values = {{"\"default\"", "none"}, {"\"llama3\"", "llama3"}},
                    .only_values = true},
                   {.key = "hidden_act", .absent = "\"silu\"", .values = {{"\"silu\"", ""}}}},
          .ignored_keys = {"initializer_range"},
          .options = {{"qkv_bias", "false"}}};
}

class Config : public ::testing::Test {
 protected:
  OptionTexts read(const std::string& json, const std::set<std::string>& ignored = {}) {
    test::write_file(folder_ / "config.json", json);
    refusals_ = {};
    return options_of(read_model_config(folder_.path()), llama(), {"model-x", llama_rows(), ignored}, refusals_);
  }
  std::vector<std::string> refused(const std::string& json, const std::set<std::string>& ignored = {}) {
    read(json, ignored);
    std::vector<std::string> out;
    for (const Refusal& refusal : refusals_) out.push_back(refusal.message.substr(refusal.message.rfind("json: ") + 6));
    return out;
  }
  std::string error(const std::string& json) {
    return error_of([&] { read(json); });
  }

  test::TempFolder folder_;
  Refusals refusals_;
};

TEST_F(Config, SetsOptionsAndDefaults) {
  EXPECT_THAT(
      read(R"({"vocab_size": 7, "tie_word_embeddings": true, "rope_parameters": {"rope_type": "llama3",
                       "rope_theta": 5e5}, "rope_theta": 500000})"),
      UnorderedElementsAre(Pair("vocab", "7"), Pair("heads", "32"), Pair("kv_heads", "0"), Pair("tied", "true"),
                           Pair("rope_base", "500000.0"), Pair("rope_scaling", "llama3"), Pair("qkv_bias", "false")));
  EXPECT_TRUE(refusals_.empty());
  const OptionTexts old = read(R"({"vocab_size": 7, "num_key_value_heads": 4, "rope_theta": 2.5})");
  EXPECT_EQ(old.at("kv_heads"), "4");
  EXPECT_EQ(old.at("rope_base"), "2.5");
}

TEST_F(Config, RefusesKeyByKey) {
  EXPECT_THAT(
      refused(R"({"num_attention_heads": "64", "num_key_value_heads": 65, "tie_word_embeddings": 1,
                          "rope_parameters": {"rope_type": "yarn", "factor": 4}, "hidden_act": "gelu"})"),
      ElementsAre(HasSubstr("vocab_size is missing"), HasSubstr("num_attention_heads = \"64\" is not an integer"),
                  HasSubstr("num_key_value_heads must be in [0, 64], got 65"),
                  HasSubstr("tie_word_embeddings = 1 is not true or false"),
                  HasSubstr("rope_type = \"yarn\" is not supported by model-x, which has \"default\" or \"llama3\""),
                  HasSubstr("hidden_act = \"gelu\" is not supported by model-x, which has \"silu\""),
                  HasSubstr("rope_parameters.factor = 4 is an unknown key of LlamaForCausalLM")));
}

/// Else the model would have the default, and --ignore would hide that.
TEST_F(Config, RefusesAnObjectInThePlaceOfAValue) {
  constexpr const char* kObject = R"({"vocab_size": 7, "num_attention_heads": {"q": 8, "k": {"v": 4}}})";
  for (const std::set<std::string>& ignored : {std::set<std::string>{}, {"num_attention_heads.q"}})
    EXPECT_THAT(refused(kObject, ignored),
                ElementsAre("num_attention_heads is an object, but LlamaForCausalLM has one value there"));
  EXPECT_THAT(refused(R"({"vocab_size": {"a": 7}})"), // and not that it is missing
              ElementsAre("vocab_size is an object, but LlamaForCausalLM has one value there"));
  EXPECT_THAT(refused(R"({"vocab_size": 7, "rope_parameters": {"rope_theta": {"a": 1}}})"),
              ElementsAre("rope_parameters.rope_theta is an object, but LlamaForCausalLM has one value there"));
}

TEST_F(Config, AKeyWithADotIsNotInAnObject) {
  constexpr const char* kTheta = R"({"vocab_size": 7, "rope_parameters.rope_theta": 5.0})";
  EXPECT_THAT(refused(kTheta), ElementsAre("rope_parameters.rope_theta = 5.0 is an unknown key of LlamaForCausalLM"));
  EXPECT_EQ(read(kTheta, {"rope_parameters.rope_theta"}).at("rope_base"), "10000.0");
  EXPECT_TRUE(refusals_.empty());
  EXPECT_THAT(refused(R"({"vocab_size": 7, "rope_parameters": {"rope_theta": 5.0}})"), IsEmpty());
  // SmolLM has it.
  EXPECT_THAT(refused(R"({"vocab_size": 7, "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}})"),
              IsEmpty());
  EXPECT_THAT(refused(R"({"vocab_size": 7, "transformers": {"js_config": 1}})"),
              ElementsAre("transformers.js_config = 1 is an unknown key of LlamaForCausalLM"));
}

TEST_F(Config, IgnoresObjectsInObjects) {
  constexpr const char* kConfig = R"({"vocab_size": 7, "a.b": {"c": {"d": 1, "e": 2}}})";
  EXPECT_THAT(refused(kConfig), ElementsAre("a.b.c.d = 1 is an unknown key of LlamaForCausalLM",
                                            "a.b.c.e = 2 is an unknown key of LlamaForCausalLM"));
  for (const char* name : {"a.b", "a.b.c"}) EXPECT_THAT(refused(kConfig, {name}), IsEmpty()) << name;
  EXPECT_THAT(refused(kConfig, {"a.b.c.d"}), ElementsAre("a.b.c.e = 2 is an unknown key of LlamaForCausalLM"));
  EXPECT_THAT(refused(kConfig, {"a", "a.b"}), ElementsAre("--ignore a: the file does not have this key"));
}

TEST_F(Config, EachRefusalNamesTheNextStep) {
  read(
      R"({"vocab_size": 0, "num_attention_heads": 9223372036854775808, "num_key_value_heads": -1, "rope_theta": 1e30})");
  EXPECT_EQ(refusals_.size(), 4u);
  for (const Refusal& refusal : refusals_) EXPECT_FALSE(refusal.hint.empty()) << refusal.message;
}

TEST_F(Config, RefusesTwoValuesOfOneOption) {
  EXPECT_THAT(refused(R"({"vocab_size": 7, "rope_parameters": {"rope_theta": 1e6}, "rope_theta": 1e4})"),
              ElementsAre(HasSubstr("rope_parameters.rope_theta = 1000000.0 and rope_theta = 10000.0 differ")));
}

TEST_F(Config, OnlyKnownKeysAreIgnored) {
  EXPECT_THAT(refused(R"({"vocab_size": 7, "initializer_range": 0.5, "bos_token_id": 3, "sliding_window": null,
                          "attention_bias": false, "pruned_heads": {}, "task_specific_params": {"a": {"b": 1}}})"),
              IsEmpty());
  constexpr const char* kWindow = R"({"vocab_size": 7, "sliding_window": 4096})";
  EXPECT_THAT(refused(kWindow), ElementsAre(HasSubstr("sliding_window = 4096 is an unknown key")));
  EXPECT_THAT(refused(kWindow, {"sliding_window"}), IsEmpty());
  EXPECT_THAT(refused(R"({"vocab_size": 7, "note": {"a": 1, "b": 2}})", {"note"}), IsEmpty());
  EXPECT_THAT(refused(R"({"vocab_size": 7, "note": {"a": 1, "b": 2}})", {"note.a"}),
              ElementsAre(HasSubstr("note.b = 2 is an unknown key")));
}

/// As early versions of transformers wrote them.
TEST_F(Config, IgnoresParametersOfGenerating) {
  EXPECT_THAT(refused(R"({"vocab_size": 7, "do_sample": true, "max_length": 50, "temperature": 0.7, "top_k": 5,
                          "_num_labels": 1, "chunk_size_feed_forward": 0})"),
              IsEmpty());
}

TEST_F(Config, RefusesToIgnoreWhatIsNotThereOrNeeded) {
  EXPECT_THAT(refused(R"({"vocab_size": 7})", {"sliding_windw", "rope_theta", "vocab_size"}),
              ElementsAre(HasSubstr("--ignore rope_theta: model-x depends on this key"),
                          HasSubstr("--ignore sliding_windw: the file does not have this key"),
                          HasSubstr("--ignore vocab_size: model-x depends on this key")));
}

TEST_F(Config, DoesNotSuggestToIgnoreQuantization) {
  read(R"({"vocab_size": 7, "quantization_config": {"bits": 4}})");
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_THAT(refusals_.front().message,
              HasSubstr("quantization_config.bits = 4 is an unknown key of LlamaForCausalLM"));
  EXPECT_EQ(refusals_.front().hint, "quantized models cannot be imported: use the model that was quantized");
}

TEST_F(Config, RefusesTextsThatAreNoConfig) {
  EXPECT_THAT(error("vocab_size = 7"), HasSubstr("config.json: is not valid JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(error(R"({"a": 1, "a": 2})"), HasSubstr("has the key \"a\" twice"));
  EXPECT_THAT(error("{\"a\": " + std::string(100'000, '[')), HasSubstr("is nested too deeply (more than "));
  EXPECT_THAT(error(R"({"architectures": "Llama"})"),
              HasSubstr("architectures must be a list of strings that are not empty, got \"Llama\""));
  EXPECT_THAT(error(R"({"architectures": [3]})"),
              HasSubstr("architectures must be a list of strings that are not empty, got [3]"));
  EXPECT_THAT(error(R"({"architectures": ["Llama", ""]})"),
              HasSubstr("architectures must be a list of strings that are not empty, got [\"Llama\",\"\"]"));
  EXPECT_THAT(error(R"({"architectures": {}})"),
              HasSubstr("architectures must be a list of strings that are not empty, got {}"));
  EXPECT_THAT(error(R"({"model_type": 3})"), HasSubstr("model_type must be a string, got 3"));
  EXPECT_THAT(error(R"({"model_type": ["a"]})"), HasSubstr("model_type must be a string, got [\"a\"]"));
  EXPECT_THAT(error(R"({"a": NaN})"), HasSubstr("config.json: is not valid JSON at line 1, column 7"));
  EXPECT_THAT(error(R"({"a": 1} {})"), HasSubstr("config.json: is not valid JSON at line 1, column 10"));
  EXPECT_THAT(error(R"({"a": 99999999999999999999})"), HasSubstr("has an integer that does not fit into 64 bits"));
  EXPECT_THAT(error("{\"a\": \"" + std::string(5'000'000, 'x') + "\"}"),
              HasSubstr("has 5 MB, but at most 4.19 MB are read"));
}

TEST_F(Config, WritesWhatItReads) {
  const OptionTexts options = {{"vocab", "7"},        {"heads", "8"},       {"kv_heads", "0"},       {"tied", "true"},
                               {"qkv_bias", "false"}, {"rope_base", "5e5"}, {"rope_scaling", "none"}};
  const auto values = config_of(options, {}, llama(), llama_rows(), "run", refusals_);
  EXPECT_TRUE(refusals_.empty());
  test::write_file(folder_ / "carried.json", R"({"bos_token_id": 3, "hidden_size": 9, "dtype": "float16",
    "transformers.js_config": {"a": 1}})");
  const auto json = nlohmann::json::parse(config_text(llama(), values, "bfloat16", folder_ / "carried.json"));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 7, "num_attention_heads": 8, "num_key_value_heads": null, "tie_word_embeddings": true,
    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "hidden_act": "silu", "bos_token_id": 3,
    "transformers.js_config": {"a": 1}, "torch_dtype": "bfloat16"})"));
  const auto own = nlohmann::json::parse(config_text(llama(), values, "float32", {}));
  for (const char* key : {"bos_token_id", "eos_token_id"}) EXPECT_TRUE(own.contains(key) && own[key].is_null()) << key;
  const auto replaced = nlohmann::json::parse(config_text(llama(), values, "bfloat16", folder_ / "carried.json",
                                                          {{"bos_token_id", "null"}, {"eos_token_id", "5"}}));
  EXPECT_TRUE(replaced.at("bos_token_id").is_null());
  EXPECT_EQ(replaced.at("eos_token_id"), 5);
  OptionTexts again = read(json.dump());
  EXPECT_TRUE(refusals_.empty());
  EXPECT_EQ(again.at("kv_heads"), "0");
  EXPECT_EQ(again.at("tied"), "true");
}

/// A factor of llama3, which has no meaning without it.
HfArchitecture with_factor() {
  HfArchitecture out = llama();
  for (const bool is_earlier : {false, true})
    out.keys.push_back({.key = is_earlier ? "rope_scaling.factor" : "rope_parameters.factor",
                        .option = "rope_factor",
                        .alternative = is_earlier,
                        .only_with = {"rope_scaling", "llama3"}});
  return out;
}

TEST_F(Config, KeysOfAnotherValueAreNotRead) {
  OptionRows rows = llama_rows();
  rows["rope_factor"] = option_float("rope_factor", "8", 1, 1e6, "doc");
  const auto read_with = [&](const std::string& json) {
    test::write_file(folder_ / "config.json", json);
    refusals_ = {};
    return options_of(read_model_config(folder_.path()), with_factor(), {"model-llama", rows}, refusals_);
  };
  EXPECT_EQ(
      read_with(R"({"vocab_size": 7, "rope_parameters": {"rope_type": "llama3", "factor": 4}})").at("rope_factor"),
      "4");
  EXPECT_FALSE(read_with(R"({"vocab_size": 7, "rope_parameters": {"rope_type": "default", "factor": 4}})")
                   .contains("rope_factor"));
  EXPECT_TRUE(refusals_.empty());
  read_with(R"({"vocab_size": 7, "rope_parameters": {"factor": null}})");
  EXPECT_TRUE(refusals_.empty());
  read_with(R"({"vocab_size": 7, "rope_parameters": {"factor": 4}})"); // of a scaling that the file does not name
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_THAT(refusals_.front().message,
              HasSubstr("rope_parameters.factor = 4 needs rope_parameters.rope_type, which is missing"));
  read_with(R"({"vocab_size": 7, "rope_parameters": {"rope_type": "llama3"}})");
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_THAT(refusals_.front().message, HasSubstr("rope_parameters.factor is missing"));
  const auto written = [&](const char* scaling) {
    std::set<std::string> keys;
    for (const auto& [key, json] : config_of({{"vocab", "7"},
                                              {"heads", "8"},
                                              {"kv_heads", "0"},
                                              {"tied", "true"},
                                              {"qkv_bias", "false"},
                                              {"rope_base", "5e5"},
                                              {"rope_factor", "8"},
                                              {"rope_scaling", scaling}},
                                             {}, with_factor(), rows, "run", refusals_))
      keys.insert(key);
    return keys;
  };
  EXPECT_TRUE(written("llama3").contains("rope_parameters.factor"));
  EXPECT_FALSE(written("none").contains("rope_parameters.factor"));
}

TEST_F(Config, WritesComputedValuesInPlaceOfDefaults) {
  const auto values = config_of({{"vocab", "7"},
                                 {"heads", "8"},
                                 {"kv_heads", "0"},
                                 {"tied", "true"},
                                 {"qkv_bias", "false"},
                                 {"rope_base", "5e5"},
                                 {"rope_scaling", "none"}},
                                {{"kv_heads", "8"}}, llama(), llama_rows(), "run", refusals_);
  EXPECT_THAT(values, ::testing::Contains(Pair("num_key_value_heads", "8")));
}

TEST_F(Config, RefusesWhatTheFormatCannotStore) {
  config_of({{"vocab", "7"},
             {"heads", "8"},
             {"kv_heads", "0"},
             {"tied", "true"},
             {"qkv_bias", "true"},
             {"rope_base", "5e5"},
             {"rope_scaling", "none"}},
            {}, llama(), llama_rows(), "run", refusals_);
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_EQ(refusals_.front().message,
            "run: model.qkv_bias = true cannot be stored as LlamaForCausalLM, which has false");
}

} // namespace
} // namespace triax::hf
