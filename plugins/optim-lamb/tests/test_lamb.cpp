// SPDX-License-Identifier: Apache-2.0
// optim-lamb, loaded as a plugin, on kernels-reference in double, compared with algorithm 2 of its paper.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/half.hpp"
#include "triax/optimizer.hpp"
#include "triax/parallel.hpp"

namespace {
using namespace triax;

constexpr double kLr = 0.125, kClip = 0.5, kDecay = 0.25; // exact in float, the type of StepScalars
constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEps = 1e-6;

struct Rule {
  bool bias_correction = true;
  double min_ratio = 0, max_ratio = 10;
  bool adapts_all = true;
};

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

/// One parameter, with the tensors that the engine keeps for it and the values that the algorithm expects.
struct LambParameter {
  std::vector<double> master, gradient, m, v;
  std::vector<double> expected, expected_m, expected_v;
  ParamSpec spec;
  std::vector<TensorView> state;

  LambParameter(std::vector<double> values, std::vector<double> gradients, bool with_decay)
      : master(values),
        gradient(gradients),
        m(values.size()),
        v(values.size()),
        expected(values),
        expected_m(values.size()),
        expected_v(values.size()),
        spec(replicated("w", {static_cast<std::int64_t>(values.size())}, {}, with_decay)),
        state{view(m), view(v)} {}

  static TensorView view(std::vector<double>& of) {
    return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}};
  }
  ParameterShard shard() {
    return {
        .name = "w", .spec = &spec, .master = view(master), .gradient = view(gradient), .working = {}, .state = state};
  }

  /// Returns the trust ratio.
  double expect_step(int step, const Rule& rule) {
    std::vector<double> direction(master.size());
    for (std::size_t i = 0; i < master.size(); ++i) {
      const double g = gradient[i] * kClip;
      expected_m[i] = kBeta1 * expected_m[i] + (1 - kBeta1) * g;
      expected_v[i] = kBeta2 * expected_v[i] + (1 - kBeta2) * g * g;
      const double mean = rule.bias_correction ? expected_m[i] / (1 - std::pow(kBeta1, step)) : expected_m[i];
      const double square = rule.bias_correction ? expected_v[i] / (1 - std::pow(kBeta2, step)) : expected_v[i];
      direction[i] = mean / (std::sqrt(square) + kEps) + (spec.decay ? kDecay : 0) * expected[i];
    }
    const double of_weights = norm_of(expected), of_direction = norm_of(direction);
    const bool adapts = (rule.adapts_all || spec.decay) && of_weights > 0 && of_direction > 0;
    const double ratio = adapts ? std::min(std::max(of_weights / of_direction, rule.min_ratio), rule.max_ratio) : 1;
    for (std::size_t i = 0; i < master.size(); ++i) expected[i] -= kLr * ratio * direction[i];
    return ratio;
  }
};

class LambPlugin : public ::testing::Test {
 protected:
  LambPlugin() {
    set({});
    kernels_->start(*device_);
  }
  void set(const Rule& rule) {
    options_.set("beta1", kBeta1);
    options_.set("beta2", kBeta2);
    options_.set("eps", kEps);
    options_.set("bias_correction", rule.bias_correction);
    options_.set("min_trust_ratio", rule.min_ratio);
    options_.set("max_trust_ratio", rule.max_ratio);
    options_.set("adapt", std::string(rule.adapts_all ? "all" : "decayed"));
  }
  plugin::Instance<Optimizer> optimizer() {
    return plugin::create<Optimizer>(plugin::load(triax::test::plugin_file("optim-lamb"), "optimizer"), context_);
  }
  void update(Optimizer& lamb, std::span<const ParameterShard> shards, const StepScalars& scalars) {
    std::vector<double> scratch(lamb.scratch_bytes(shards) / sizeof(double));
    lamb.step(shards,
              {.scalars = &scalars,
               .weight_decay = kDecay,
               .groups = no_groups_,
               .scratch = std::as_writable_bytes(std::span(scratch)),
               .op = {*stream_, {}}},
              *kernels_);
  }

  /// Four steps of a weight and a bias. Returns the trust ratios of the first.
  std::vector<double> follow_the_algorithm(const Rule& rule) {
    set(rule);
    const auto lamb = optimizer();
    LambParameter weight({1, -2, 0.5, 3, -0.25, 1.5, 0.75, 2, -1, 0.125, -3}, // more than the lanes of a sum
                         {0.3, -0.7, 4, 0.1, 0, 2, -0.2, 0.4, 1, -1, 0.6}, true),
        bias({0.25, 3}, {-1, 1e-3}, false);
    const std::vector<ParameterShard> shards{weight.shard(), bias.shard()};
    lamb->prepare(shards);
    StepScalars scalars{.lr = kLr, .clip = kClip};
    std::vector<double> ratios;
    for (int step = 1; step <= 4; ++step) {
      scalars.step = step;
      update(*lamb, shards, scalars);
      for (LambParameter* parameter : {&weight, &bias}) {
        const double ratio = parameter->expect_step(step, rule);
        if (step == 1) ratios.push_back(ratio);
        for (std::size_t i = 0; i < parameter->master.size(); ++i) {
          EXPECT_NEAR(parameter->master[i], parameter->expected[i], 1e-12) << "step " << step << ", element " << i;
          EXPECT_NEAR(parameter->m[i], parameter->expected_m[i], 1e-12);
          EXPECT_NEAR(parameter->v[i], parameter->expected_v[i], 1e-12);
          parameter->gradient[i] *= -0.8; // a different gradient in each step
        }
      }
    }
    return ratios;
  }

  Options options_, no_options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  PluginContext context_{options_, null_log(), layout_}, kernels_context_{no_options_, null_log(), layout_};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  plugin::Instance<KernelSet> kernels_ = plugin::create<KernelSet>(
      plugin::load(triax::test::plugin_file("kernels-reference"), "kernels"), kernels_context_);
  const Groups no_groups_;
};

TEST_F(LambPlugin, FollowsTheAlgorithmAndDecaysOnlyMarkedParameters) {
  const std::vector<double> ratios = follow_the_algorithm({});
  EXPECT_NE(ratios[0], 1);
  EXPECT_NE(ratios[1], 1);
}

TEST_F(LambPlugin, FollowsTheAlgorithmWithoutBiasCorrection) {
  follow_the_algorithm({.bias_correction = false});
}

/// 1 - beta2 in fp32 would be 1.3 % too large.
TEST_F(LambPlugin, AddsAsMuchOfAGradientAsBetaLeaves) {
  options_.set("beta2", 0.999999);
  const auto lamb = optimizer();
  std::vector<float> p{1, -2}, g{0.5f, 0.25f}, m(2), v(2);
  const auto view = [](std::vector<float>& of) { return TensorView(of.data(), DType::f32, Shape{2}); };
  const ParamSpec spec = replicated("w", {2}, {}, true);
  const std::vector<TensorView> state{view(m), view(v)};
  const std::vector<ParameterShard> shards{
      {.name = "w", .spec = &spec, .master = view(p), .gradient = view(g), .working = {}, .state = state}};
  lamb->prepare(shards);
  update(*lamb, shards, {.lr = kLr, .clip = 1, .step = 1});
  for (std::size_t i = 0; i < v.size(); ++i) {
    EXPECT_NEAR(m[i] / (0.1 * g[i]), 1, 1e-6);
    EXPECT_NEAR(v[i] / (1e-6 * g[i] * g[i]), 1, 1e-6);
  }
}

TEST_F(LambPlugin, LimitsTrustRatios) {
  EXPECT_EQ(follow_the_algorithm({.max_ratio = 0.5}).front(), 0.5);
  EXPECT_EQ(follow_the_algorithm({.min_ratio = 20, .max_ratio = 30}).front(), 20);
}

TEST_F(LambPlugin, LeavesOutParametersWithoutWeightDecay) {
  const std::vector<double> ratios = follow_the_algorithm({.adapts_all = false});
  EXPECT_NE(ratios[0], 1);
  EXPECT_EQ(ratios[1], 1);
}

TEST_F(LambPlugin, ParametersThatAreZeroLearn) {
  const auto lamb = optimizer();
  LambParameter bias({0, 0}, {-1, 2}, false), idle({1, 2}, {0, 0}, false);
  const std::vector<ParameterShard> shards{bias.shard(), idle.shard()};
  lamb->prepare(shards);
  update(*lamb, shards, {.lr = kLr, .clip = kClip, .step = 1});
  EXPECT_EQ(bias.expect_step(1, {}), 1);
  EXPECT_NEAR(bias.master[0], bias.expected[0], 1e-12);
  EXPECT_GT(bias.master[0], 0);
  EXPECT_EQ(idle.master, (std::vector<double>{1, 2}));
}

TEST_F(LambPlugin, ASkippedStepChangesNothing) {
  const auto lamb = optimizer();
  LambParameter weight({1, -2, 0.5}, {0.3, std::nan(""), 4}, true);
  const std::vector<ParameterShard> shards{weight.shard()};
  lamb->prepare(shards);
  update(*lamb, shards, {.lr = kLr, .clip = kClip, .skip = 1});
  EXPECT_EQ(weight.master, weight.expected);
  EXPECT_EQ(weight.m, weight.expected_m);
  EXPECT_EQ(weight.v, weight.expected_v);
}

TEST_F(LambPlugin, WritesWorkingWeights) {
  const auto lamb = optimizer();
  LambParameter weight({1, -2, 0.5}, {0.3, -0.7, 4}, true);
  std::vector<Bf16> working(3);
  ParameterShard shard = weight.shard();
  shard.working = {working.data(), DType::bf16, Shape{3}};
  lamb->prepare({&shard, 1});
  update(*lamb, {&shard, 1}, {.lr = kLr, .clip = kClip, .step = 1});
  for (std::size_t i = 0; i < working.size(); ++i)
    EXPECT_EQ(static_cast<double>(working[i]), static_cast<double>(Bf16(weight.master[i])));
}

TEST_F(LambPlugin, DeclaresWhatItNeeds) {
  const auto lamb = optimizer();
  EXPECT_EQ(lamb->traits().state, (std::vector<std::string>{"m", "v"}));
  EXPECT_FALSE(lamb->traits().elementwise);
  EXPECT_TRUE(lamb->traits().may_be_sharded());
  EXPECT_TRUE(lamb->supports({DType::f32}).empty());
  EXPECT_EQ(lamb->supports({DType::bf16}).front().message, "optim-lamb keeps master weights in fp32 or fp64, not bf16");
}

TEST_F(LambPlugin, RefusesDevicesAndBoundsThatItCannotUse) {
  const Refusals of_device = optimizer()->supports({DType::f32, DeviceKind::cuda});
  ASSERT_EQ(of_device.size(), 1U);
  EXPECT_EQ(of_device.front().message, "optim-lamb computes in host memory; the weights are on the device \"CUDA\"");
  set({.min_ratio = 3, .max_ratio = 2});
  const Refusals of_bounds = optimizer()->supports({DType::f32});
  ASSERT_EQ(of_bounds.size(), 1U);
  EXPECT_EQ(of_bounds.front().message, "optimizer.min_trust_ratio = 3 must be at most optimizer.max_trust_ratio = 2");
}

} // namespace
