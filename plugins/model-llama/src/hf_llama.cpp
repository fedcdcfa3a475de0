// SPDX-License-Identifier: Apache-2.0
// How transformers stores this model. Matrices are those of torch.nn.Linear, [out, in]. The rows of attention.qkv are
// ordered [key head, its query heads and key and value, d], those of mlp.up [gate and up, f].
#include "llama.hpp"

namespace triax::model_llama {

namespace {

constexpr const char *kTokens = "model.embed_tokens.weight", *kLlama = "LlamaForCausalLM";

/// Values of a config.json without the key, which differ between the architectures.
struct Absent {
  const char *vocab, *hidden, *inner, *kv_heads, *sequence;
};

HfKey fixed(std::string key, std::string value) {
  return {.key = std::move(key), .absent = value, .values = {{value, ""}}};
}

/// A key of the rotary positions: in rope_parameters, and in rope_scaling of version 4 of transformers. Without either
/// the option cannot be known. Programs that know only version 4 would compute without a scaling that is not there.
void add_of_scaling(std::vector<HfKey>& keys, const std::string& key, const std::string& option) {
  for (const bool is_earlier : {false, true})
    keys.push_back({.key = (is_earlier ? "rope_scaling." : "rope_parameters.") + key,
                    .option = option,
                    .alternative = is_earlier,
                    .only_with = {"rope_scaling", "llama3"},
                    .also_written = is_earlier});
}

std::vector<HfKey> common_keys(const Absent& absent) {
  std::vector<HfKey> keys = {
      {.key = "vocab_size", .option = "vocab", .absent = absent.vocab},
      {.key = "max_position_embeddings", .option = "sequence", .absent = absent.sequence},
      {.key = "hidden_size", .option = "hidden", .absent = absent.hidden},
      {.key = "num_hidden_layers", .option = "layers", .absent = "32"},
      {.key = "num_attention_heads", .option = "heads", .absent = "32"},
      {.key = "num_key_value_heads", .option = "kv_heads", .absent = absent.kv_heads, .values = {{"null", "0"}}},
      {.key = "intermediate_size", .option = "inner", .absent = absent.inner},
      {.key = "rms_norm_eps", .option = "norm_eps", .absent = "1e-6"},
      {.key = "tie_word_embeddings", .option = "tied", .absent = "false"},
      {.key = "rope_parameters.rope_theta", .option = "rope_theta", .absent = "10000.0"},
      // The name in version 4.
      {.key = "rope_theta", .option = "rope_theta", .alternative = true, .also_written = true}};
  const std::vector<HfValue> types = {{"\"default\"", "none"}, {"\"llama3\"", "llama3"}};
  for (const char* key : {"rope_parameters.rope_type", "rope_scaling.rope_type", "rope_scaling.type"}) {
    const std::string_view name = key;
    const bool is_earlier = name.starts_with("rope_scaling.");
    keys.push_back({.key = key,
                    .option = "rope_scaling",
                    .absent = is_earlier ? "" : "\"default\"",
                    .values = types,
                    .only_values = true,
                    .alternative = is_earlier,
                    .also_written = name == "rope_scaling.rope_type"});
  }
  add_of_scaling(keys, "factor", "rope_factor");
  add_of_scaling(keys, "low_freq_factor", "rope_low_freq_factor");
  add_of_scaling(keys, "high_freq_factor", "rope_high_freq_factor");
  add_of_scaling(keys, "original_max_position_embeddings", "rope_original_sequence");
  keys.push_back(fixed("hidden_act", "\"silu\""));
  keys.push_back(fixed("attention_dropout", "0.0"));
  return keys;
}

HfArchitecture architecture(const char* name, const char* model_type, const Absent& absent, std::vector<HfKey> keys,
                            std::vector<std::pair<std::string, std::string>> options) {
  HfArchitecture out{.name = name,
                     .model_type = model_type,
                     .keys = common_keys(absent),
                     .ignored_keys = {"initializer_range"},
                     .options = std::move(options),
                     .optional_prefix = "model.",
                     .copies = {{"lm_head.weight", kTokens}},
                     .ignored_tensors = {"model.layers.{}.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"}};
  for (HfKey& key : keys) out.keys.push_back(std::move(key));
  return out;
}

} // namespace

// Absent keys have the values of the configuration classes of transformers.
std::vector<HfArchitecture> hf_architectures() {
  const HfKey head_dim{.key = "head_dim", .option = "head_size", .absent = "null", .values = {{"null", "0"}}};
  const HfKey head_dim_of_qwen3{.key = "head_dim", .option = "head_size", .absent = "128"};
  HfArchitecture llama = architecture(kLlama, "llama", {"32000", "4096", "11008", "null", "2048"},
                                      {head_dim, fixed("attention_bias", "false"), fixed("mlp_bias", "false")},
                                      {{"qkv_bias", "false"}, {"qk_norm", "false"}});
  llama.ignored_keys.emplace_back("pretraining_tp");      // how the products are divided, on one device
  llama.ignored_keys.emplace_back("is_llama_config");     // a note of the program that wrote the file
  llama.ignored_keys.emplace_back("max_sequence_length"); // of the first Llama, beside max_position_embeddings
  const HfArchitecture mistral =
      architecture("MistralForCausalLM", "mistral", {"32000", "4096", "14336", "8", "131072"},
                   {head_dim,
                    {.key = "sliding_window",
                     .absent = "4096",
                     .values = {{"null", ""}},
                     .hint = "for samples that are not longer than the window, set sliding_window to null and "
                             "max_position_embeddings to the window's length; otherwise use another model"}},
                   {{"qkv_bias", "false"}, {"qk_norm", "false"}});
  HfArchitecture qwen2 = architecture("Qwen2ForCausalLM", "qwen2", {"151936", "4096", "22016", "32", "32768"},
                                      {fixed("use_sliding_window", "false")},
                                      {{"qkv_bias", "true"}, {"qk_norm", "false"}, {"head_size", "0"}});
  HfArchitecture qwen3 =
      architecture("Qwen3ForCausalLM", "qwen3", {"151936", "4096", "22016", "32", "32768"},
                   {head_dim_of_qwen3, fixed("attention_bias", "false"), fixed("use_sliding_window", "false")},
                   {{"qkv_bias", "false"}, {"qk_norm", "true"}});
  for (HfArchitecture* const qwen : {&qwen2, &qwen3}) {
    for (const char* key : {"sliding_window", "max_window_layers"}) // not read without use_sliding_window
      qwen->ignored_keys.emplace_back(key);
    qwen->constant_lists = {{"layer_types", "\"full_attention\""}};
  }
  return {std::move(llama), mistral, std::move(qwen2), std::move(qwen3)};
}

std::vector<HfParameter> hf_parameters(const Sizes& sizes, std::string_view architecture) {
  // Version 5 of transformers checks this in LlamaConfig, and in no other configuration class.
  if (architecture == kLlama && sizes.hidden % sizes.heads != 0)
    throw Error(
        text("{} of transformers must have a hidden size that is divisible by the number of heads, got {} and {}",
             kLlama, sizes.hidden, sizes.heads),
        {}, "MistralForCausalLM without a sliding window has the same layers: use this architecture");
  const std::string block = "model.layers.{}.";
  std::vector<HfParameter> rows = {{.parameter = "embedding/tokens.weight", .tensors = {kTokens}}};
  const auto add = [&](const std::string& here, const std::string& there) {
    rows.push_back({.parameter = "block {}/" + here, .tensors = {block + there}});
  };
  add("attention.norm.weight", "input_layernorm.weight");
  const std::int64_t queries = sizes.heads * sizes.head_size, keys = sizes.kv_heads * sizes.head_size;
  for (const char* of : {".weight", ".bias"})
    rows.push_back(
        {.parameter = std::string("block {}/attention.qkv") + of,
         .tensors = {block + "self_attn.q_proj" + of, block + "self_attn.k_proj" + of, block + "self_attn.v_proj" + of},
         .parts = {queries, keys, keys},
         .groups = sizes.kv_heads});
  add("attention.q_norm.weight", "self_attn.q_norm.weight");
  add("attention.k_norm.weight", "self_attn.k_norm.weight");
  add("attention.projection.weight", "self_attn.o_proj.weight");
  add("mlp.norm.weight", "post_attention_layernorm.weight");
  rows.push_back({.parameter = "block {}/mlp.up.weight",
                  .tensors = {block + "mlp.gate_proj.weight", block + "mlp.up_proj.weight"}});
  add("mlp.down.weight", "mlp.down_proj.weight");
  rows.push_back({.parameter = "head/norm.weight", .tensors = {"model.norm.weight"}});
  rows.push_back({.parameter = "head/tokens.weight", .tensors = {"lm_head.weight"}});
  return rows;
}

std::vector<std::pair<std::string, std::string>> hf_resolved_options(const Sizes& sizes) {
  return {{"kv_heads", std::to_string(sizes.kv_heads)},
          {"head_size", std::to_string(sizes.head_size)},
          {"inner", std::to_string(sizes.inner)}};
}

} // namespace triax::model_llama
