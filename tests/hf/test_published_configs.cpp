// SPDX-License-Identifier: Apache-2.0
// config.json of models that many people use, key by key as published: each is read without --ignore, and describes a
// model with the published number of parameters. They were written by many versions of transformers, and by others.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hf/architecture_choice.hpp"
#include "reference_model.hpp"

namespace triax::hf {
namespace {

/// Keys of every GPT-2 of OpenAI.
constexpr const char* kGpt2Keys = R"("activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
  "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_positions": 1024, "resid_pdrop": 0.1,
  "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
  "summary_type": "cls_index", "summary_use_proj": true, "vocab_size": 50257,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}})";

struct Published {
  std::string name, keys; // of config.json
  std::int64_t parameters;
};

std::string of_gpt2(const std::string& keys) {
  return std::string(kGpt2Keys) + ", " + keys;
}

std::vector<Published> published() {
  return {
      {"gpt2", of_gpt2(R"("n_embd": 768, "n_head": 12, "n_layer": 12)"), 124439808},
      {"gpt2_medium", of_gpt2(R"("n_embd": 1024, "n_head": 16, "n_layer": 24, "n_special": 0,
  "predict_special_tokens": true)"),
       354823168},
      {"gpt2_xl", of_gpt2(R"("n_embd": 1600, "n_head": 25, "n_layer": 48, "output_past": true)"), 1557611200},
      {"distilgpt2", of_gpt2(R"("n_embd": 768, "n_head": 12, "n_layer": 6, "_num_labels": 1,
  "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0})"),
       81912576},
      {"llama_7b", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1,
  "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 11008, "max_position_embeddings": 2048, "max_sequence_length": 2048,
  "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.28.0.dev0", "use_cache": true,
  "vocab_size": 32000)",
       6738415616},
      {"llama_2_70b", R"("_name_or_path": "meta-llama/Llama-2-70b-hf", "architectures": ["LlamaForCausalLM"],
  "model_type": "llama", "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 8192,
  "initializer_range": 0.02, "intermediate_size": 28672, "max_position_embeddings": 4096, "num_attention_heads": 64,
  "num_hidden_layers": 80, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16",
  "transformers_version": "4.32.0.dev0", "use_cache": true, "vocab_size": 32000)",
       68976648192},
      {"llama_3_2_1b", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
  "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
  "max_position_embeddings": 131072, "mlp_bias": false, "num_attention_heads": 32, "num_hidden_layers": 16,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256,
  "rope_theta": 500000.0, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
  "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "unsloth_fixed": true, "unsloth_version": "2025.1")",
       1235814400},
      {"smollm2_135m", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
  "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576,
  "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "max_position_embeddings": 8192,
  "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pad_token_id": null,
  "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
  "is_llama_config": true, "pretraining_tp": 1, "rope_interleaved": false, "rope_scaling": null,
  "rope_theta": 100000, "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
  "vocab_size": 49152)",
       134515008},
      {"tinyllama_1_1b", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1,
  "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 5632, "max_position_embeddings": 2048, "num_attention_heads": 32, "num_hidden_layers": 22,
  "num_key_value_heads": 4, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
  "attention_bias": false, "pretraining_tp": 1, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.35.0", "use_cache": true, "vocab_size": 32000)",
       1100048384},
      {"mistral_7b_v0_3", R"("architectures": ["MistralForCausalLM"], "model_type": "mistral", "attention_dropout": 0.0,
  "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
  "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
  "vocab_size": 32768)",
       7248023552},
      {"qwen2_5_0_5b", R"("architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "attention_dropout": 0.0,
  "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896,
  "initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 32768, "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "max_window_layers": 24, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936)",
       494032768},
      {"qwen3_0_6b", R"("architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false,
  "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960,
  "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "max_window_layers": 28, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936)",
       596049920}};
}

class PublishedConfig : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedConfig, DescribesAModelOfThePublishedSize) {
  const test::TempFolder folder;
  test::write_file(folder / kConfigFile, "{" + GetParam().keys + "}");
  const ModelConfig config = read_model_config(folder.path());
  const ArchitectureChoice choice = choose_architecture(config, {}, {});
  const HfArchitecture& architecture = choice.plugin.architectures[choice.index];
  Refusals refusals;
  const OptionTexts options = options_of(config, architecture, {choice.plugin.name, choice.plugin.rows}, refusals);
  ASSERT_TRUE(refusals.empty()) << refusals.front().message;
  const MappedModel model(choice.plugin, options);
  ASSERT_TRUE(model.refusals().empty()) << model.refusals().front().message;
  std::int64_t parameters = 0;
  for (const StoredParameter& parameter : model.parameters(architecture)) parameters += parameter.shape.elements();
  EXPECT_EQ(parameters, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Of, PublishedConfig, ::testing::ValuesIn(published()),
                         [](const auto& of) { return of.param.name; });

} // namespace
} // namespace triax::hf
