// SPDX-License-Identifier: Apache-2.0
// How transformers stores this model: GPT2LMHeadModel. Weights are those of Conv1D, [in, out]. The columns of c_attn
// are ordered [3, head, d], and the rows of attention.qkv [head, 3, d].
#include "gpt.hpp"

namespace triax::model_gpt {

namespace {

constexpr const char* kTokens = "transformer.wte.weight";

/// A linear layer, with its bias.
void add_linear(std::vector<HfParameter>& rows, const std::string& here, const std::string& there,
                const std::vector<std::int64_t>& parts = {}, std::int64_t groups = 1) {
  for (const char* of : {".weight", ".bias"})
    rows.push_back({.parameter = here + of,
                    .tensors = {there + of},
                    .transposed = of == std::string(".weight"),
                    .parts = parts,
                    .groups = groups});
}

void add_norm(std::vector<HfParameter>& rows, const std::string& here, const std::string& there) {
  for (const char* of : {".weight", ".bias"}) rows.push_back({.parameter = here + of, .tensors = {there + of}});
}

} // namespace

// Absent keys have the values of transformers' GPT2Config.
HfArchitecture gpt2_architecture() {
  return {.name = "GPT2LMHeadModel",
          .model_type = "gpt2",
          .keys = {{.key = "vocab_size", .option = "vocab", .absent = "50257"},
                   {.key = "n_positions", .option = "sequence", .absent = "1024"},
                   {.key = "n_ctx", .option = "sequence", .alternative = true}, // the name in early versions
                   {.key = "n_embd", .option = "hidden", .absent = "768"},
                   {.key = "n_layer", .option = "layers", .absent = "12"},
                   {.key = "n_head", .option = "heads", .absent = "12"},
                   {.key = "n_inner", .option = "inner", .absent = "null", .values = {{"null", "0"}}},
                   {.key = "layer_norm_epsilon", .option = "norm_eps", .absent = "1e-5"},
                   {.key = "resid_pdrop", .option = "dropout", .absent = "0.1"},
                   {.key = "embd_pdrop", .option = "dropout", .absent = "0.1"},
                   {.key = "attn_pdrop", .option = "dropout", .absent = "0.1"},
                   {.key = "activation_function",
                    .absent = "\"gelu_new\"",
                    .values = {{"\"gelu_new\"", ""}, {"\"gelu_pytorch_tanh\"", ""}}}, // two names of one function
                   {.key = "tie_word_embeddings", .absent = "true", .values = {{"true", ""}}},
                   {.key = "scale_attn_weights", .absent = "true", .values = {{"true", ""}}},
                   {.key = "scale_attn_by_inverse_layer_idx", .absent = "false", .values = {{"false", ""}}},
                   {.key = "reorder_and_upcast_attn", .absent = "false", .values = {{"false", ""}}},
                   {.key = "add_cross_attention", .absent = "false", .values = {{"false", ""}}}},
          // The last three are of early versions, which wrote them to the larger models of GPT-2.
          .ignored_keys = {"initializer_range", "summary_type", "summary_use_proj", "summary_activation",
                           "summary_proj_to_labels", "summary_first_dropout", "n_special", "predict_special_tokens",
                           "output_past"},
          .optional_prefix = "transformer.",
          .copies = {{"lm_head.weight", kTokens}},
          .ignored_tensors = {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias"}}; // causal masks
}

std::vector<HfParameter> gpt2_parameters(const Sizes& sizes) {
  const std::int64_t h = sizes.hidden;
  std::vector<HfParameter> rows = {{.parameter = "embedding/tokens.weight", .tensors = {kTokens}},
                                   {.parameter = "embedding/positions.weight", .tensors = {"transformer.wpe.weight"}}};
  add_norm(rows, "block {}/attention.norm", "transformer.h.{}.ln_1");
  add_linear(rows, "block {}/attention.qkv", "transformer.h.{}.attn.c_attn", {h, h, h}, sizes.heads);
  add_linear(rows, "block {}/attention.projection", "transformer.h.{}.attn.c_proj");
  add_norm(rows, "block {}/mlp.norm", "transformer.h.{}.ln_2");
  add_linear(rows, "block {}/mlp.up", "transformer.h.{}.mlp.c_fc");
  add_linear(rows, "block {}/mlp.down", "transformer.h.{}.mlp.c_proj");
  add_norm(rows, "head/norm", "transformer.ln_f");
  return rows;
}

} // namespace triax::model_gpt
