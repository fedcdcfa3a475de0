// SPDX-License-Identifier: Apache-2.0
// optim-sgd, loaded as a plugin, on kernels-reference in double, with and without momentum.
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

class SgdPlugin : public ::testing::Test {
 protected:
  plugin::Instance<Optimizer> optimizer(double momentum) {
    options_.set("momentum", momentum);
    return plugin::create<Optimizer>(plugin::load(triax::test::plugin_file("optim-sgd"), "optimizer"), context_);
  }
  static TensorView view(std::vector<double>& of) {
    return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}};
  }

  void update(Optimizer& sgd, std::span<const ParameterShard> shards, const StepScalars& scalars) {
    sgd.step(shards,
             {.scalars = &scalars, .weight_decay = kDecay, .groups = no_groups_, .scratch = {}, .op = {*stream_, {}}},
             *kernels_);
  }

  void follow_the_formula(double momentum, bool decay) {
    const auto sgd = optimizer(momentum);
    kernels_->start(*device_);
    std::vector<double> master{1, -2, 0.5}, gradient{0.3, -0.7, 4}, velocity(3), expected = master, sum(3);
    const std::vector<TensorView> state{view(velocity)};
    const ParamSpec spec = replicated("w", {3}, {}, decay);
    const std::vector<ParameterShard> shards{{.name = "w",
                                              .spec = &spec,
                                              .master = view(master),
                                              .gradient = view(gradient),
                                              .working = {},
                                              .state = std::span(state).first(momentum == 0 ? 0 : 1)}};
    sgd->prepare(shards);
    StepScalars scalars{.lr = kLr, .clip = kClip};
    for (int step = 1; step <= 3; ++step) {
      scalars.step = step;
      update(*sgd, shards, scalars);
      for (std::size_t i = 0; i < master.size(); ++i) {
        const double g = gradient[i] * kClip + (decay ? kDecay * expected[i] : 0);
        sum[i] = momentum * sum[i] + g;
        expected[i] -= kLr * sum[i];
        EXPECT_NEAR(master[i], expected[i], 1e-12) << "step " << step << ", element " << i;
        gradient[i] *= -0.8; // a different gradient in each step
      }
    }
  }

  const Groups no_groups_;
  Options options_, no_options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  PluginContext context_{options_, null_log(), layout_}, kernels_context_{no_options_, null_log(), layout_};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  plugin::Instance<KernelSet> kernels_ = plugin::create<KernelSet>(
      plugin::load(triax::test::plugin_file("kernels-reference"), "kernels"), kernels_context_);
};

TEST_F(SgdPlugin, PlainStep) {
  follow_the_formula(0, false);
}

TEST_F(SgdPlugin, MomentumAndDecay) {
  follow_the_formula(0.75, true);
}

TEST_F(SgdPlugin, ASkippedStepChangesNothing) {
  const auto sgd = optimizer(0.75);
  kernels_->start(*device_);
  std::vector<double> master{1, -2}, gradient{0.3, std::nan("")}, velocity{3, 4};
  const std::vector<TensorView> state{view(velocity)};
  const ParamSpec spec = replicated("w", {2}, {}, true);
  const std::vector<ParameterShard> shards{
      {.name = "w", .spec = &spec, .master = view(master), .gradient = view(gradient), .working = {}, .state = state}};
  sgd->prepare(shards);
  const StepScalars scalars{.lr = kLr, .clip = kClip, .skip = 1};
  update(*sgd, shards, scalars);
  EXPECT_EQ(master, (std::vector<double>{1, -2}));
  EXPECT_EQ(velocity, (std::vector<double>{3, 4}));
}

TEST_F(SgdPlugin, KeepsStateOnlyForMomentum) {
  EXPECT_TRUE(optimizer(0)->traits().state.empty());
  EXPECT_EQ(optimizer(0.9)->traits().state, (std::vector<std::string>{"velocity"}));
  EXPECT_TRUE(optimizer(0)->supports({DType::f64}).empty());
  EXPECT_EQ(optimizer(0)->supports({DType::f16}).front().message,
            "optim-sgd keeps master weights in fp32 or fp64, not fp16");
}

} // namespace
