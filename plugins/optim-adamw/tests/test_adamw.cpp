// SPDX-License-Identifier: Apache-2.0
// optim-adamw, loaded as a plugin, on kernels-reference in double, compared with the formula of its paper.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/optimizer.hpp"
#include "triax/parallel.hpp"

namespace {
using namespace triax;

constexpr double kLr = 0.125, kClip = 0.5, kDecay = 0.25; // exact in float, the type of StepScalars

/// One parameter, with the tensors that the engine keeps for it and the values that the formula expects.
struct Parameter {
  std::vector<double> master, gradient, m, v;
  std::vector<double> expected, expected_m, expected_v;
  ParamSpec spec;

  Parameter(std::vector<double> values, std::vector<double> gradients, bool with_decay)
      : master(values),
        gradient(gradients),
        m(values.size()),
        v(values.size()),
        expected(values),
        expected_m(values.size()),
        expected_v(values.size()),
        spec(replicated("w", {static_cast<std::int64_t>(values.size())}, {}, with_decay)) {}

  static TensorView view(std::vector<double>& of) {
    return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}};
  }

  ParameterShard shard(std::span<const TensorView> state) {
    return {
        .name = "w", .spec = &spec, .master = view(master), .gradient = view(gradient), .working = {}, .state = state};
  }

  void expect_step(int step) {
    for (std::size_t i = 0; i < master.size(); ++i) {
      const double g = gradient[i] * kClip;
      expected_m[i] = 0.9 * expected_m[i] + 0.1 * g;
      expected_v[i] = 0.95 * expected_v[i] + 0.05 * g * g;
      const double mean = expected_m[i] / (1 - std::pow(0.9, step));
      const double square = expected_v[i] / (1 - std::pow(0.95, step));
      expected[i] -= kLr * (mean / (std::sqrt(square) + 1e-8) + (spec.decay ? kDecay : 0) * expected[i]);
    }
  }
};

class AdamWPlugin : public ::testing::Test {
 protected:
  AdamWPlugin() {
    options_.set("beta1", 0.9);
    options_.set("beta2", 0.95);
    options_.set("eps", 1e-8);
    optimizer_ = std::make_unique<plugin::Instance<Optimizer>>(
        plugin::create<Optimizer>(plugin::load(triax::test::plugin_file("optim-adamw"), "optimizer"), context_));
    kernels_->start(*device_);
  }
  Optimizer& optimizer() { return **optimizer_; }
  void update(std::span<const ParameterShard> shards, const StepScalars& scalars) {
    optimizer().step(
        shards,
        {.scalars = &scalars, .weight_decay = kDecay, .groups = no_groups_, .scratch = {}, .op = {*stream_, {}}},
        *kernels_);
  }

  Options options_, no_options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  PluginContext context_{options_, null_log(), layout_}, kernels_context_{no_options_, null_log(), layout_};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  plugin::Instance<KernelSet> kernels_ = plugin::create<KernelSet>(
      plugin::load(triax::test::plugin_file("kernels-reference"), "kernels"), kernels_context_);
  std::unique_ptr<plugin::Instance<Optimizer>> optimizer_;
  const Groups no_groups_;
};

TEST_F(AdamWPlugin, FollowsTheFormulaAndDecaysOnlyMarkedParameters) {
  Parameter weight({1, -2, 0.5}, {0.3, -0.7, 4}, true), bias({0.25, 3}, {-1, 1e-3}, false);
  std::vector<TensorView> weight_state{Parameter::view(weight.m), Parameter::view(weight.v)};
  std::vector<TensorView> bias_state{Parameter::view(bias.m), Parameter::view(bias.v)};
  const std::vector<ParameterShard> shards{weight.shard(weight_state), bias.shard(bias_state)};
  optimizer().prepare(shards);
  StepScalars scalars{.lr = kLr, .clip = kClip};
  for (int step = 1; step <= 4; ++step) {
    scalars.step = step;
    update(shards, scalars);
    for (Parameter* parameter : {&weight, &bias}) {
      parameter->expect_step(step);
      for (std::size_t i = 0; i < parameter->master.size(); ++i) {
        EXPECT_NEAR(parameter->master[i], parameter->expected[i], 1e-12) << "step " << step << ", element " << i;
        EXPECT_NEAR(parameter->m[i], parameter->expected_m[i], 1e-12);
        EXPECT_NEAR(parameter->v[i], parameter->expected_v[i], 1e-12);
        parameter->gradient[i] *= -0.8; // a different gradient in each step
      }
    }
  }
}

TEST_F(AdamWPlugin, ASkippedStepChangesNothing) {
  Parameter weight({1, -2, 0.5}, {0.3, std::nan(""), 4}, true);
  std::vector<TensorView> state{Parameter::view(weight.m), Parameter::view(weight.v)};
  const std::vector<ParameterShard> shards{weight.shard(state)};
  optimizer().prepare(shards);
  const StepScalars scalars{.lr = kLr, .clip = kClip, .skip = 1};
  update(shards, scalars);
  EXPECT_EQ(weight.master, weight.expected);
  EXPECT_EQ(weight.m, weight.expected_m);
  EXPECT_EQ(weight.v, weight.expected_v);
}

TEST_F(AdamWPlugin, DeclaresItsStateAndMasterTypes) {
  EXPECT_EQ(optimizer().traits().state, (std::vector<std::string>{"m", "v"}));
  EXPECT_TRUE(optimizer().supports({DType::f32}).empty());
  EXPECT_EQ(optimizer().supports({DType::bf16}).front().message,
            "optim-adamw keeps master weights in fp32 or fp64, not bf16");
}

TEST_F(AdamWPlugin, StepsAnyOfItsShards) {
  Parameter one({1, -2}, {0.3, -0.7}, true), two({0.25}, {-1}, false);
  std::vector<TensorView> of_one{Parameter::view(one.m), Parameter::view(one.v)};
  std::vector<TensorView> of_two{Parameter::view(two.m), Parameter::view(two.v)};
  const std::vector<ParameterShard> shards{one.shard(of_one), two.shard(of_two)};
  optimizer().prepare(shards);
  const StepScalars scalars{.lr = kLr, .clip = kClip, .step = 1};
  update(std::span(shards).last(1), scalars);
  EXPECT_EQ(one.master, one.expected);
  two.expect_step(1);
  EXPECT_NEAR(two.master[0], two.expected[0], 1e-12);
}

TEST_F(AdamWPlugin, RefusesMoreShardsThanItPreparedFor) {
  optimizer().prepare({});
  const std::vector<ParameterShard> shards(1);
  StepScalars scalars;
  EXPECT_THROW(update(shards, scalars), Error);
}

} // namespace
