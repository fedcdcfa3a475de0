// SPDX-License-Identifier: Apache-2.0
// The sizes that the options ask for, and which of them a run cannot use.
#include <algorithm>

#include "llama.hpp"

namespace triax::model_llama {

namespace {

/// 8h/3, which makes the three matrices as large as GPT's two of 4h (Shazeer 2020), in multiples of 64.
std::int64_t default_inner(std::int64_t hidden) {
  return ((8 * hidden + 2) / 3 + 63) / 64 * 64;
}

RopeScaling scaling_of(const Options& options) {
  if (options.text("rope_scaling") == "none") return {};
  return {.factor = options.number("rope_factor"),
          .low_freq_factor = options.number("rope_low_freq_factor"),
          .high_freq_factor = options.number("rope_high_freq_factor"),
          .original_positions = static_cast<double>(options.integer("rope_original_sequence"))};
}

void refuse_heads(const Options& options, const Sizes& sizes, Refusals& out) {
  const std::int64_t hidden = sizes.hidden, heads = sizes.heads, kv_heads = sizes.kv_heads;
  if (heads % kv_heads != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"model.heads", "model.kv_heads"},
                         "model.heads = {} is not divisible by model.kv_heads = {}: each key head serves as many "
                         "query heads",
                         heads, kv_heads)
                .with_hint("use kv_heads {}", nearest_values(kv_heads, heads, [&](auto k) { return heads % k == 0; })));
  const bool has_head_size = options.integer("head_size") != 0;
  if (!has_head_size && hidden % heads != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"model.hidden", "model.heads", "model.head_size"},
                         "model.hidden = {} is not divisible by model.heads = {}: without model.head_size each head "
                         "has hidden / heads columns",
                         hidden, heads)
                .with_hint("set head_size, or use hidden {}",
                           nearest_values(hidden, hidden + heads, [&](auto h) { return h % heads == 0; })));
  else if (sizes.head_size % 2 != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible,
                         has_head_size ? std::vector<std::string>{"model.head_size"}
                                       : std::vector<std::string>{"model.hidden", "model.heads"},
                         "a head has {} columns, an odd number: rotary positions rotate pairs", sizes.head_size)
                .with_hint("use head_size {}",
                           nearest_values(sizes.head_size, sizes.head_size + 1, [](auto d) { return d % 2 == 0; })));
}

/// "kv_heads 4, or "; empty if none fit.
std::string other_kv_heads(const Sizes& sizes, std::int64_t tensor) {
  const std::string fits =
      nearest_values(sizes.kv_heads, sizes.heads, [&](auto k) { return k % tensor == 0 && sizes.heads % k == 0; });
  return fits.empty() ? fits : text("kv_heads {}, or ", fits);
}

std::string other_inner(const Sizes& sizes, std::int64_t tensor) {
  return text("inner {}, or ",
              nearest_values(sizes.inner, sizes.inner + tensor, [&](auto f) { return f % tensor == 0; }));
}

/// The nearest numbers of tensor ranks that these sizes are divisible by.
std::string tensor_sizes(const Sizes& sizes, std::int64_t tensor) {
  return nearest_values(tensor, sizes.kv_heads,
                        [&](auto t) { return sizes.kv_heads % t == 0 && sizes.inner % t == 0; });
}

void refuse_tensor_ranks(const Options& options, const Sizes& sizes, const ModelRequest& request, std::int64_t tensor,
                         Refusals& out) {
  const std::int64_t kv_heads = sizes.kv_heads, inner = sizes.inner;
  if (kv_heads % tensor != 0) {
    const char* const key = options.integer("kv_heads") != 0 ? "model.kv_heads" : "model.heads";
    out.add(make_refusal(ErrorCode::kNotDivisible, {key, "parallel.tensor"},
                         "{} = {} is not divisible by parallel.tensor = {}: each tensor rank has whole key heads", key,
                         kv_heads, tensor)
                .with_hint("use {}tensor {}", request.has_weights ? "" : other_kv_heads(sizes, tensor),
                           tensor_sizes(sizes, tensor)));
  }
  if (inner % tensor != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"model.inner", "parallel.tensor"},
                         "model.inner = {} is not divisible by parallel.tensor = {}: each tensor rank has as many "
                         "columns of the MLP",
                         inner, tensor)
                .with_hint("use {}tensor {}", request.has_weights ? "" : other_inner(sizes, tensor),
                           tensor_sizes(sizes, tensor)));
}

} // namespace

Sizes sizes_of(const Options& options) {
  const std::int64_t hidden = options.integer("hidden"), heads = options.integer("heads"),
                     kv_heads = options.integer("kv_heads"), head_size = options.integer("head_size"),
                     inner = options.integer("inner");
  return {.layers = options.integer("layers"),
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads != 0 ? kv_heads : heads,
          .sequence = options.integer("sequence"),
          .head_size = head_size != 0 ? head_size : std::max<std::int64_t>(hidden / heads, 1),
          .inner = inner != 0 ? inner : default_inner(hidden),
          .norm_eps = options.number("norm_eps"),
          .rope_theta = options.number("rope_theta"),
          .rope_scaling = scaling_of(options),
          .qkv_bias = options.flag("qkv_bias"),
          .qk_norm = options.flag("qk_norm"),
          .tied = options.flag("tied")};
}

Refusals size_refusals(const Options& options, const ModelRequest& request, const Layout& layout) {
  const Sizes sizes = sizes_of(options);
  Refusals out;
  refuse_heads(options, sizes, out);
  refuse_tensor_ranks(options, sizes, request, layout.tensor_size(), out);
  const RopeScaling& scaling = sizes.rope_scaling;
  if (scaling.low_freq_factor >= scaling.high_freq_factor)
    out.add(make_refusal(ErrorCode::kOutOfRange, {"model.rope_low_freq_factor", "model.rope_high_freq_factor"},
                         "model.rope_low_freq_factor = {} is not less than model.rope_high_freq_factor = {}",
                         scaling.low_freq_factor, scaling.high_freq_factor)
                .with_hint("use those of Llama 3.1: 1 and 4"));
  out.add(shared_layer_refusals(request, layout, "model-llama", sizes.sequence, sizes.kv_heads));
  return out;
}

} // namespace triax::model_llama
