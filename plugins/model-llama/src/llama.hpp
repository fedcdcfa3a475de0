// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of this model: its sizes and options, initial weights, and what creates its parts.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <triax/hf_mapping.hpp>
#include <triax/options.hpp>
#include <triax/shared_layers.hpp>
#include <utility>
#include <vector>

namespace triax::model_llama {

/// The [model] table, with computed values in place of 0.
struct Sizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, sequence = 0;
  std::int64_t head_size = 0; // d
  std::int64_t inner = 0;     // width of the MLP
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling{};
  bool qkv_bias = false, qk_norm = false, tied = false;

  std::int64_t group() const { return heads / kv_heads; } // query heads of a key head
  NormOptions norm_options() const { return {.kind = NormKind::rms, .width = hidden, .eps = norm_eps}; }
};

Sizes sizes_of(const Options& options);

/// Every reason why a model of these options cannot serve the run.
Refusals size_refusals(const Options& options, const ModelRequest& request, const Layout& layout);

/// Initial weights as GPT-2's: normal with this standard deviation, divided by sqrt(2l) for the 2l projections that add
/// to the residual stream.
inline constexpr double kStd = 0.02;
inline Init weight_init() {
  return {Init::Kind::normal, kStd};
}
inline Init residual_init(std::int64_t layers) {
  return {Init::Kind::normal, kStd / std::sqrt(2.0 * static_cast<double>(layers))};
}

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index);

/// The tables of HfMapping: LlamaForCausalLM and architectures with the same block.
std::vector<HfArchitecture> hf_architectures();
std::vector<HfParameter> hf_parameters(const Sizes& sizes, std::string_view architecture);
std::vector<std::pair<std::string, std::string>> hf_resolved_options(const Sizes& sizes);

} // namespace triax::model_llama
