// SPDX-License-Identifier: Apache-2.0
// model-gpt: its descriptions and refusals, and invariants of its forward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gpt_run.hpp"
#include "support/error_of.hpp"

namespace triax::model_gpt_test {
namespace {

std::int64_t parameter_count(GptRun& run) {
  std::int64_t count = 0;
  for (const Parameter& parameter : run.parameters())
    if (parameter.name != "head/tokens.weight") count += parameter.spec.global.elements();
  return count;
}

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

TEST(Gpt, HintsAreValid) {
  // 7 heads over 2 ranks with h = 49: no even number divides 49, so the hint can change only the ranks.
  const Refusals support = GptModel({.hidden = 49, .heads = 7})->supports({.vocab = 11}, Layout::ptd(1, 2, 1));
  EXPECT_EQ(support.front().hint, "use tensor 1 or 7");
}

TEST(Gpt, Layers) {
  const auto device = make_host_device();
  GptRun run({.layers = 3}, *device);
  std::vector<std::string> names;
  for (const auto& layer : run.layers()) names.emplace_back(layer->name());
  EXPECT_EQ(names, (std::vector<std::string>{"embedding", "block 0", "block 1", "block 2", "head"}));
  const GptModel model({.layers = 3});
  EXPECT_EQ(model->count(), 5);
  ASSERT_EQ(model->ties().size(), 1u);
  EXPECT_EQ(model->ties()[0].layer_b, 4);
  EXPECT_EQ(run.parameter("embedding/" + model->ties()[0].param_a).spec.global,
            run.parameter("head/" + model->ties()[0].param_b).spec.global);
}

// Equation 2 of Narayanan et al., SC'21, plus the final norm, which the equation omits.
TEST(Gpt, NumberOfParameters) {
  const auto device = make_host_device();
  GptRun run({.layers = 3, .hidden = 16, .sequence = 7, .vocab = 29}, *device);
  const double l = 3, h = 16, s = 7, v = 29;
  EXPECT_DOUBLE_EQ(static_cast<double>(parameter_count(run)),
                   12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) + 2 * h);
}

TEST(Gpt, ParametersHaveTheFixedNumbers) {
  const auto device = make_host_device();
  GptRun run({.layers = 2}, *device);
  std::set<std::uint32_t> sites;
  for (const Parameter& parameter : run.parameters()) {
    const ParamSpec& spec = parameter.spec;
    EXPECT_TRUE(sites.insert(spec.site).second) << parameter.name << " shares its random site";
    EXPECT_EQ(spec.decay, spec.global.rank() >= 2) << parameter.name;
    const bool residual = spec.name == "attention.projection.weight" || spec.name == "mlp.down.weight";
    if (spec.global.rank() >= 2) {
      EXPECT_EQ(spec.init.kind, Init::Kind::normal) << parameter.name;
      EXPECT_DOUBLE_EQ(spec.init.std, residual ? 0.01 : 0.02) << parameter.name; // 0.02 / sqrt(2l) with l = 2
    } else {
      const bool scale = spec.name.find("norm.weight") != std::string::npos;
      EXPECT_EQ(spec.init.kind, scale ? Init::Kind::ones : Init::Kind::zeros) << parameter.name;
    }
  }
}

// The FLOPs that the kernels count in a real forward and backward equal the formula. Attention's backward recomputes
// the scores; model FLOPs do not include that fifth product.
TEST(Gpt, FlopsOfTheFormulaAreThoseDone) {
  const Setting setting{.layers = 3, .hidden = 16, .sequence = 6, .vocab = 20, .micro = 3};
  const auto device = make_host_device();
  GptRun run(setting, *device);
  run.forward(std::vector<std::int64_t>{0, 1, 2});
  run.backward();
  double done = 0;
#define TRIAX_OP(Args, name) done += run.kernels().stats(Op::name).flops;
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  done -= run.kernels().stats(Op::attention_bwd).flops / 5;
  double declared = 0;
  for (const auto& layer : run.layers()) {
    const Cost cost = layer->cost();
    declared += cost.forward + cost.backward_input + cost.backward_weight;
  }
  const double formula = GptModel(setting)->flops_per_sample(setting.vocab) * static_cast<double>(setting.micro);
  EXPECT_NEAR(done / formula, 1, 1e-12);
  EXPECT_NEAR(declared / formula, 1, 1e-12);
}

TEST(Gpt, AGeneratingModelHasTheSameParametersAndNoBackward) {
  const Setting setting;
  const GptModel model(setting);
  const Layout layout = Layout::ptd(1, 1, 1);
  LayerContext context{.layout = layout,
                       .micro = setting.micro,
                       .vocab = setting.vocab,
                       .compute = setting.compute,
                       .sequence = setting.sequence,
                       .max_rows = setting.sequence};
  for (int index = 0; index < model->count(); ++index) {
    context.purpose = Purpose::train;
    const auto trains = model->layer(index, context);
    context.purpose = Purpose::generate;
    const auto generates = model->layer(index, context);
    ASSERT_EQ(generates->params().size(), trains->params().size());
    for (std::size_t i = 0; i < trains->params().size(); ++i) {
      EXPECT_EQ(generates->params()[i].name, trains->params()[i].name);
      EXPECT_EQ(generates->params()[i].local, trains->params()[i].local);
    }
    if (index + 1 < model->count()) continue;
    const auto device = make_host_device();
    const auto stream = device->make_stream("none");
    const auto kernels = reference_kernels();
    const Groups nobody;
    const LayerCall call{*device, *kernels, *stream, {}, nobody, {}};
    EXPECT_THAT(test::error_of([&] { generates->backward_weight(call, {}, {}, {}); }),
                ::testing::HasSubstr("a head that ends in logits has no backward"));
  }
}

TEST(Gpt, EvaluationHasNoDropout) {
  const auto device = make_host_device();
  const std::vector<std::int64_t> samples{4, 9};
  GptRun with({.dropout = 0.25}, *device), without({}, *device);
  const std::vector<double> expected = without.forward(samples);
  EXPECT_EQ(with.forward(samples, false), expected);
  EXPECT_NE(with.forward(samples, true), expected);
}

// Dropout depends on a sample's running number, so the microbatch size does not matter.
TEST(Gpt, SamplesDoNotSeeEachOther) {
  const auto device = make_host_device();
  GptRun three({.micro = 3, .dropout = 0.25}, *device), one({.micro = 1, .dropout = 0.25}, *device);
  const std::vector<double> together = three.forward(std::vector<std::int64_t>{4, 9, 2});
  const std::int64_t numbers[] = {4, 9, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    const double alone = one.forward(std::span(numbers).subspan(i, 1))[0];
    EXPECT_NEAR(together[i], alone, 1e-12 * alone);
  }
}

TEST(Gpt, SameSampleTwiceGivesTheSameBits) {
  const auto device = make_host_device();
  GptRun run({.dropout = 0.25, .compute = DType::f32}, *device);
  const std::vector<std::int64_t> samples{5, 6};
  const std::vector<double> first = run.forward(samples);
  EXPECT_EQ(run.forward(samples), first);
}

} // namespace
} // namespace triax::model_gpt_test
