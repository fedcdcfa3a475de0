// SPDX-License-Identifier: Apache-2.0
// model-gpt: its descriptions and refusals. What every model must keep is in the conformance suite, which
// tests/conformance runs on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpt_layers.hpp"
#include "support/error_of.hpp"

namespace triax::model_gpt_test {
namespace {

TEST(Gpt, RefusesInvalidSizesWithHints) {
  const ModelRequest request{.vocab = 11};
  const auto refusal = [&](const Setting& setting, int tensor) {
    return GptModel(setting)->supports(request, Layout::ptd(1, tensor, 1));
  };
  EXPECT_TRUE(refusal({.hidden = 8, .heads = 4}, 4).empty());

  const Refusals heads = refusal({.hidden = 60, .heads = 5}, 2);
  EXPECT_EQ(heads.front().message,
            "model.heads = 5 is not divisible by parallel.tensor = 2: each tensor rank has whole heads");
  EXPECT_EQ(heads.front().hint, "use heads 4 or 6, or tensor 1 or 5");

  const Refusals hidden = refusal({.hidden = 100, .heads = 3}, 1);
  EXPECT_EQ(hidden.front().message,
            "model.hidden = 100 is not divisible by model.heads = 3: each head has hidden / heads columns");
  EXPECT_EQ(hidden.front().hint, "use hidden 99 or 102, or heads 2 or 4");

  const Refusals vocab = refusal({.hidden = 64, .heads = 16}, 16);
  EXPECT_EQ(vocab.front().message, "model.vocab = 11 over parallel.tensor = 16 leaves a tensor rank without tokens");
  EXPECT_EQ(vocab.front().hint, "use tensor 4"); // with 8 ranks, 2 tokens each, the last two ranks get none
}

TEST(Gpt, NoRefusalHidesAnother) {
  const Refusals both = GptModel({.hidden = 48, .heads = 5})->supports({.vocab = 11}, Layout::ptd(1, 2, 1));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].keys, (std::vector<std::string>{"model.hidden", "model.heads"}));
  EXPECT_EQ(both[1].keys, (std::vector<std::string>{"model.heads", "parallel.tensor"}));
  for (const Refusal& refusal : both) EXPECT_EQ(refusal.code, ErrorCode::kNotDivisible);
}

/// Weights fix the options: only the layout can change.
TEST(Gpt, HintsForWeightsNameTheLayoutOnly) {
  const auto hint = [](const Setting& setting, int tensor, bool sequence_parallel = false) {
    const Refusals refusals = GptModel(setting)->supports(
        {.vocab = 11, .sequence_parallel = sequence_parallel, .has_weights = true}, Layout::ptd(1, tensor, 1));
    return refusals.size() == 1 ? refusals.front().hint : text("{} refusals", refusals.size());
  };
  EXPECT_EQ(hint({.hidden = 60, .heads = 5}, 2), "use tensor 1 or 5");
  EXPECT_EQ(hint({.hidden = 8, .heads = 4, .inner = 22}, 4), "use tensor 2");
  EXPECT_EQ(hint({.hidden = 8, .heads = 4, .sequence = 7}, 2, true), "leave parallel.sequence out");
}

TEST(Gpt, HintsAreValid) {
  // 7 heads over 2 ranks with h = 49: no even number divides 49, so the hint can change only the ranks.
  const Refusals support = GptModel({.hidden = 49, .heads = 7})->supports({.vocab = 11}, Layout::ptd(1, 2, 1));
  EXPECT_EQ(support.front().hint, "use tensor 1 or 7");
}

TEST(Gpt, Layers) {
  const GptLayers layers({.layers = 3});
  std::vector<std::string> names;
  for (const auto& layer : layers.all()) names.emplace_back(layer->name());
  EXPECT_EQ(names, (std::vector<std::string>{"embedding", "block 0", "block 1", "block 2", "head"}));
  ASSERT_EQ(layers.model().ties().size(), 1u);
  const Tie& tie = layers.model().ties()[0];
  EXPECT_EQ(tie.layer_b, 4);
  EXPECT_EQ(layers.parameter(0, tie.param_a).global, layers.parameter(4, tie.param_b).global);
}

// Equation 2 of Narayanan et al., SC'21, plus the final norm, which the equation omits.
TEST(Gpt, NumberOfParameters) {
  const GptLayers layers({.layers = 3, .hidden = 16, .sequence = 7, .vocab = 29});
  const double l = 3, h = 16, s = 7, v = 29;
  std::int64_t count = 0;
  for (const auto& layer : layers.all())
    for (const ParamSpec& spec : layer->params()) count += spec.global.elements();
  count -= layers.parameter(4, "tokens.weight").global.elements(); // tied
  EXPECT_DOUBLE_EQ(static_cast<double>(count), 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) + 2 * h);
}

TEST(Gpt, ParametersHaveTheFixedNumbers) {
  const GptLayers layers({.layers = 2});
  for (const auto& layer : layers.all())
    for (const ParamSpec& spec : layer->params()) {
      SCOPED_TRACE(text("{}/{}", layer->name(), spec.name));
      EXPECT_EQ(spec.decay, spec.global.rank() >= 2);
      const bool residual = spec.name == "attention.projection.weight" || spec.name == "mlp.down.weight";
      if (spec.global.rank() >= 2) {
        EXPECT_EQ(spec.init.kind, Init::Kind::normal);
        EXPECT_DOUBLE_EQ(spec.init.std, residual ? 0.01 : 0.02); // 0.02 / sqrt(2l) with l = 2
      } else {
        const bool scale = spec.name.find("norm.weight") != std::string::npos;
        EXPECT_EQ(spec.init.kind, scale ? Init::Kind::ones : Init::Kind::zeros);
      }
    }
}

// The suite compares it with the costs of the layers, and these with what the kernels count.
TEST(Gpt, FlopsAreThoseOfTheFormula) {
  const GptModel model({.layers = 3, .hidden = 16, .sequence = 6});
  const double l = 3, h = 16, s = 6, v = 20;
  EXPECT_DOUBLE_EQ(model->flops_per_sample(20), 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)));
  const GptModel wide({.layers = 3, .hidden = 16, .sequence = 6, .inner = 66});
  EXPECT_DOUBLE_EQ(wide->flops_per_sample(20), model->flops_per_sample(20) + 12 * s * l * h * 2);
}

TEST(Gpt, AGeneratingHeadHasNoBackward) {
  const GptLayers layers({}, Purpose::generate);
  const auto device = make_dry_run_device(DeviceKind::host);
  const auto stream = device->make_stream("none");
  class NoKernels final : public KernelSet {
   public:
    DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
    Refusals supports(const KernelRequest&) const override { return {}; }
    void start(Device&) override {}
  } kernels;
  const Groups no_groups;
  const LayerCall call{*device, kernels, *stream, {}, no_groups, {}};
  EXPECT_THAT(test::error_of([&] { layers.all().back()->backward_weight(call, {}, {}, {}); }),
              ::testing::HasSubstr("a head that ends in logits has no backward"));
}

} // namespace
} // namespace triax::model_gpt_test
