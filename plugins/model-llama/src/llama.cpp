// SPDX-License-Identifier: Apache-2.0
// model-llama: Llama (Touvron et al. 2023; Dubey et al. 2024) and models with the same block, such as Mistral, Qwen2
// and Qwen3. RMS norm, rotary positions, grouped-query attention, SwiGLU.
#include "llama.hpp"

#include <triax/plugin.hpp>

namespace triax::model_llama {

namespace {

constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 4096, "transformer blocks, l"),
    option_int("hidden", nullptr, 1, 1e6, "width of the residual stream, h"),
    option_int("heads", nullptr, 1, 1e6, "query heads, a"),
    option_int("kv_heads", "0", 0, 1e6, "key and value heads, k; 0: as many as query heads"),
    option_int("head_size", "0", 0, 1e6, "columns of a head; 0: h/a"),
    option_int("sequence", nullptr, 1, 1e9, "tokens per sample, s"),
    option_int("inner", "0", 0, 1e7, "width of the MLP; 0: 8h/3, rounded up to a multiple of 64"),
    option_float("norm_eps", "1e-5", 1e-12, 1, "added to the mean square in norms"),
    option_float("rope_theta", "10000", 1, 1e12, "base of the frequencies of rotary positions"),
    option_string("rope_scaling", "none", "none|llama3", "how the frequencies are changed for longer sequences"),
    option_float("rope_factor", "8", 1, 1e6, "llama3: what low frequencies are divided by"),
    option_float("rope_low_freq_factor", "1", 1e-3, 1e6,
                 "llama3: column pairs that turn fewer times than this over rope_original_sequence positions have "
                 "their frequency divided by rope_factor"),
    option_float("rope_high_freq_factor", "4", 1e-3, 1e6,
                 "llama3: pairs that turn more often than this keep their "
                 "frequency; pairs between the two are interpolated"),
    option_int("rope_original_sequence", "8192", 1, 1e9, "llama3: positions of the model before scaling"),
    option_bool("qkv_bias", "false", "biases of queries, keys and values (Qwen2)"),
    option_bool("qk_norm", "false", "RMS norm of each query and key head (Qwen3)"),
    option_bool("tied", "false", "the head uses the token table of the embedding"),
};

class Llama final : public Model, public HfMapping {
 public:
  explicit Llama(const PluginContext& context) : options_(context.options), sizes_(sizes_of(options_)) {
    if (sizes_.tied) ties_ = {{0, kTokenTable, count() - 1, kTokenTable}};
  }

  ModelInfo info() const override {
    return {.blocks = static_cast<int>(sizes_.layers), .first_block = 1, .sequence = sizes_.sequence};
  }
  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    return size_refusals(options_, request, layout);
  }
  int count() const override { return static_cast<int>(sizes_.layers) + 2; }

  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    TRIAX_REQUIRE(index >= 0 && index < count(), "layer {} of a model of {} layers", index, count());
    const VocabLayerOptions vocab{.hidden = sizes_.hidden, .init = weight_init(), .norm = sizes_.norm_options()};
    if (index == 0) return make_token_embedding(context, vocab);
    if (index == count() - 1) return make_head(context, vocab, index);
    return make_block(sizes_, context, index);
  }

  std::span<const Tie> ties() const override { return ties_; }

  // Per token, forward: 4hd(a + k) of attention's linears, 6hf of the MLP, 4sad of scores, 2hV of logits; and twice
  // that backward.
  double flops_per_sample(std::int64_t vocab) const override {
    const double s = static_cast<double>(sizes_.sequence), l = static_cast<double>(sizes_.layers),
                 h = static_cast<double>(sizes_.hidden), f = static_cast<double>(sizes_.inner),
                 d = static_cast<double>(sizes_.head_size), a = static_cast<double>(sizes_.heads),
                 k = static_cast<double>(sizes_.kv_heads), v = static_cast<double>(vocab);
    return s * l * (12 * h * d * (a + k) + 18 * h * f + 12 * s * a * d) + 6 * s * h * v;
  }

  void* extension(std::string_view id) noexcept override {
    return id == HfMapping::kExtension ? static_cast<HfMapping*>(this) : nullptr;
  }
  std::vector<HfArchitecture> architectures() const override { return hf_architectures(); }
  std::vector<HfParameter> parameters(std::string_view architecture) const override {
    return hf_parameters(sizes_, architecture);
  }
  std::vector<std::pair<std::string, std::string>> resolved_options() const override {
    return hf_resolved_options(sizes_);
  }

 private:
  const Options options_;
  const Sizes sizes_;
  std::vector<Tie> ties_;
};

} // namespace

TRIAX_PLUGIN(triax::Model, Llama, "model-llama", "0.1.0",
             "Llama, Mistral, Qwen2, Qwen3: rotary positions, RMS norm, grouped-query attention, SwiGLU", kOptions)

} // namespace triax::model_llama
