// SPDX-License-Identifier: Apache-2.0
// model-llama: its descriptions and refusals. What every model must keep is in the conformance suite, which
// tests/conformance runs on it; logits of transformers are in tests/hf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llama_layers.hpp"

namespace triax::model_llama_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Refusals refusals_of(const Setting& setting, int tensor, bool sequence_parallel = false) {
  return LlamaModel(setting)->supports({.vocab = 11, .sequence_parallel = sequence_parallel},
                                       Layout::ptd(1, tensor, 1));
}

/// The only refusal: message, and hint.
void expect_refused(const Setting& setting, int tensor, const std::string& message, const std::string& hint) {
  const Refusals refused = refusals_of(setting, tensor);
  ASSERT_EQ(refused.size(), 1u) << message;
  EXPECT_EQ(refused.front().message, message);
  EXPECT_EQ(refused.front().hint, hint);
}

TEST(Llama, RefusesKeyHeadsThatCannotBeDivided) {
  EXPECT_THAT(refusals_of({.heads = 4, .kv_heads = 2}, 2), IsEmpty());
  expect_refused({.hidden = 16, .heads = 8, .kv_heads = 2}, 4,
                 "model.kv_heads = 2 is not divisible by parallel.tensor = 4: each tensor rank has whole key heads",
                 "use kv_heads 4, or tensor 2");
  expect_refused({.hidden = 12, .heads = 6, .kv_heads = 4}, 1,
                 "model.heads = 6 is not divisible by model.kv_heads = 4: each key head serves as many query heads",
                 "use kv_heads 3 or 6");
  const Refusals all = refusals_of({.hidden = 16, .heads = 4}, 8);
  EXPECT_EQ(all[0].message,
            "model.heads = 4 is not divisible by parallel.tensor = 8: each tensor rank has whole key heads");
  EXPECT_THAT(all[0].keys, ElementsAre("model.heads", "parallel.tensor"));
}

TEST(Llama, RefusesOtherSizesWithHints) {
  expect_refused(
      {.hidden = 10, .heads = 4}, 1,
      "model.hidden = 10 is not divisible by model.heads = 4: without model.head_size each head has hidden / "
      "heads columns",
      "set head_size, or use hidden 8 or 12");
  expect_refused({.hidden = 12, .heads = 4}, 1, "a head has 3 columns, an odd number: rotary positions rotate pairs",
                 "use head_size 2 or 4");
  expect_refused({.hidden = 10, .heads = 4, .head_size = 5}, 1,
                 "a head has 5 columns, an odd number: rotary positions rotate pairs", "use head_size 4 or 6");
  expect_refused(
      {.hidden = 10, .heads = 4, .head_size = 6, .inner = 21}, 2,
      "model.inner = 21 is not divisible by parallel.tensor = 2: each tensor rank has as many columns of the "
      "MLP",
      "use inner 20 or 22, or tensor 1");
  expect_refused({.rope_scaling = "llama3", .low_freq_factor = 4}, 1,
                 "model.rope_low_freq_factor = 4 is not less than model.rope_high_freq_factor = 4",
                 "use those of Llama 3.1: 1 and 4");
  EXPECT_THAT(refusals_of({.low_freq_factor = 4}, 1), IsEmpty()); // not read
}

/// Weights fix the options: only the layout can change.
TEST(Llama, HintsForWeightsNameTheLayoutOnly) {
  const auto hints_of = [](const Setting& setting, int tensor, bool sequence_parallel = false) {
    std::vector<std::string> out;
    for (const Refusal& refusal : LlamaModel(setting)->supports(
             {.vocab = 11, .sequence_parallel = sequence_parallel, .has_weights = true}, Layout::ptd(1, tensor, 1)))
      out.push_back(refusal.hint);
    return out;
  };
  EXPECT_THAT(hints_of({.hidden = 16, .heads = 8, .kv_heads = 2}, 4), ElementsAre("use tensor 2"));
  EXPECT_THAT(hints_of({.hidden = 10, .heads = 4, .head_size = 6, .inner = 21}, 2), ElementsAre("use tensor 1"));
  EXPECT_THAT(hints_of({.hidden = 16, .heads = 4, .sequence = 7}, 2, true), ElementsAre("leave parallel.sequence out"));
}

TEST(Llama, NoRefusalHidesAnother) {
  const Refusals all = refusals_of({.hidden = 10, .heads = 6, .kv_heads = 4, .inner = 20}, 3, true);
  std::vector<ErrorCode> codes;
  for (const Refusal& refusal : all) codes.push_back(refusal.code);
  EXPECT_EQ(all.size(), 5u); // heads, hidden, key heads over ranks, inner, positions
  EXPECT_THAT(codes, ::testing::Each(ErrorCode::kNotDivisible));
}

TEST(Llama, Parameters) {
  const LlamaLayers plain({.layers = 1});
  EXPECT_THAT(plain.parameters(0), ElementsAre("tokens.weight"));
  EXPECT_THAT(plain.parameters(1),
              ElementsAre("attention.norm.weight", "attention.qkv.weight", "attention.projection.weight",
                          "mlp.norm.weight", "mlp.up.weight", "mlp.down.weight"));
  EXPECT_THAT(plain.parameters(2), ElementsAre("norm.weight", "tokens.weight"));
  const LlamaLayers more({.layers = 1, .qkv_bias = true, .qk_norm = true});
  EXPECT_THAT(more.parameters(1),
              ElementsAre("attention.norm.weight", "attention.qkv.weight", "attention.qkv.bias",
                          "attention.q_norm.weight", "attention.k_norm.weight", "attention.projection.weight",
                          "mlp.norm.weight", "mlp.up.weight", "mlp.down.weight"));
}

TEST(Llama, SizesFollowTheOptions) {
  const LlamaLayers layers({.hidden = 10, .heads = 6, .kv_heads = 2, .head_size = 4, .inner = 7, .qk_norm = true});
  EXPECT_EQ(layers.parameter(1, "attention.qkv.weight").global, (Shape{(6 + 2 * 2) * 4, 10}));
  EXPECT_EQ(layers.parameter(1, "attention.projection.weight").global, (Shape{10, 6 * 4}));
  EXPECT_EQ(layers.parameter(1, "attention.q_norm.weight").global, (Shape{4}));
  EXPECT_EQ(layers.parameter(1, "mlp.up.weight").global, (Shape{2, 7, 10}));
  EXPECT_EQ(layers.parameter(1, "mlp.down.weight").global, (Shape{10, 7}));
}

// 8h/3 is 10922.67 with h = 4096.
TEST(Llama, TheDefaultWidthOfTheMlp) {
  EXPECT_EQ(LlamaLayers({.layers = 1, .hidden = 4096}).parameter(1, "mlp.down.weight").global, (Shape{4096, 10944}));
  EXPECT_EQ(LlamaLayers({.layers = 1, .hidden = 24}).parameter(1, "mlp.down.weight").global, (Shape{24, 64}));
}

TEST(Llama, TheHeadIsTiedOnRequest) {
  EXPECT_THAT(LlamaModel({})->ties(), IsEmpty());
  const LlamaLayers tied({.layers = 3, .tied = true});
  ASSERT_EQ(tied.model().ties().size(), 1u);
  const Tie& tie = tied.model().ties()[0];
  EXPECT_EQ(tie.layer_b, 4);
  EXPECT_EQ(tied.parameter(0, tie.param_a).global, tied.parameter(4, tie.param_b).global);
}

// 6,738,415,616 parameters of Llama 2 7B (Touvron et al. 2023); 8,030,261,248 of Llama 3 8B (Dubey et al. 2024).
TEST(Llama, NumberOfParameters) {
  const auto count = [](const Setting& setting) {
    const LlamaLayers layers(setting);
    std::int64_t out = 0;
    for (const auto& layer : layers.all())
      for (const ParamSpec& spec : layer->params()) out += spec.global.elements();
    return out;
  };
  EXPECT_EQ(count({.layers = 32, .hidden = 4096, .heads = 32, .inner = 11008, .vocab = 32000}), 6738415616);
  EXPECT_EQ(count({.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .inner = 14336, .vocab = 128256}),
            8030261248);
}

TEST(Llama, ParametersHaveTheFixedNumbers) {
  const LlamaLayers layers({.layers = 2, .qkv_bias = true, .qk_norm = true});
  for (const auto& layer : layers.all())
    for (const ParamSpec& spec : layer->params()) {
      SCOPED_TRACE(text("{}/{}", layer->name(), spec.name));
      EXPECT_EQ(spec.decay, spec.global.rank() >= 2);
      const bool residual = spec.name == "attention.projection.weight" || spec.name == "mlp.down.weight";
      if (spec.global.rank() >= 2) {
        EXPECT_EQ(spec.init.kind, Init::Kind::normal);
        EXPECT_DOUBLE_EQ(spec.init.std, residual ? 0.01 : 0.02); // 0.02 / sqrt(2l) with l = 2
      } else {
        EXPECT_EQ(spec.init.kind, spec.name.ends_with("norm.weight") ? Init::Kind::ones : Init::Kind::zeros);
      }
    }
}

// The suite compares it with the costs of the layers, and these with what the kernels count.
TEST(Llama, FlopsAreThoseOfTheFormula) {
  const LlamaModel model({.layers = 3, .hidden = 16, .heads = 4, .kv_heads = 2, .sequence = 6, .inner = 20});
  const double matrices = 2 * 16 * 16 + 2 * 16 * 8 + 3 * 16 * 20; // q, projection; k, v; gate, up, down
  EXPECT_DOUBLE_EQ(model->flops_per_sample(20), 3 * 6 * (6 * matrices + 12 * 6 * 16) + 6 * 6 * 16 * 20);
}

} // namespace
} // namespace triax::model_llama_test
