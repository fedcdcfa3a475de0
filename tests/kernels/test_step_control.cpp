// SPDX-License-Identifier: Apache-2.0
// step_control compared with a copy of Megatron-LM's scaler over random sequences of steps, and its results for sums
// and losses, with every kernel set that trains on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/kernels.hpp"

namespace triax::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// DynamicGradScaler.update of megatron/core/optimizer/grad_scaler.py, and the optimizer that uses it.
struct Megatron {
  float scale, min_scale, growth_factor, backoff_factor;
  int growth_interval, hysteresis;
  int growth_tracker = 0, hysteresis_tracker = hysteresis;
  std::int64_t steps = 0;

  void step(bool found_inf) {
    if (found_inf) {
      growth_tracker = 0;
      hysteresis_tracker -= 1;
      if (hysteresis_tracker <= 0) scale = std::max(scale * backoff_factor, min_scale);
      return;
    }
    steps += 1;
    growth_tracker += 1;
    if (growth_tracker != growth_interval) return;
    growth_tracker = 0;
    hysteresis_tracker = hysteresis;
    scale = scale * growth_factor;
  }
};

class StepControls : public ::testing::TestWithParam<const char*> {
 protected:
  StepControls() {
    options_.set("threads", std::int64_t{1}); // for kernels-cpu
    const plugin::Library& library = plugin::load(test::plugin_file(GetParam()), KernelSet::kKind);
    kernels_.emplace(plugin::create<KernelSet>(library, {options_, null_log(), layout_, 0, 1}));
    set().start(*device_);
  }
  /// Uses all `squares`, in their order.
  void decide(StepScalars& now, std::vector<double> squares, std::vector<double> losses = {2.5}, double clip_grad = 0,
              const LossScaling& scaling = {}) {
    std::vector<std::int32_t> order(squares.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    decide(now, squares, order, losses, clip_grad, scaling);
  }
  void decide(StepScalars& now, std::vector<double>& squares, std::vector<std::int32_t>& order,
              std::vector<double>& losses, double clip_grad, const LossScaling& scaling) {
    const auto view = [](auto& of, DType type) {
      return TensorView(of.data(), type, {static_cast<std::int64_t>(of.size())});
    };
    set().step_control(
        {view(squares, DType::f64), view(order, DType::i32), view(losses, DType::f64), &now, clip_grad, scaling},
        {*stream_, {}});
  }
  KernelSet& set() { return **kernels_; }
  Stream& stream() { return *stream_; }

 private:
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("test");
  std::optional<plugin::Instance<KernelSet>> kernels_;
};

TEST_P(StepControls, MovesTheScaleAsMegatronDoes) {
  std::mt19937 random(5);
  for (const int window : {1, 3, 10}) {
    for (const int hysteresis : {1, 2, 4}) {
      for (const double often : {0.02, 0.2, 0.7}) { // probability of a gradient that is not finite
        const LossScaling scaling{.min = 4, .window = window, .hysteresis = hysteresis};
        Megatron expected{1024, scaling.min, scaling.growth, scaling.backoff, window, hysteresis};
        StepScalars now;
        now.loss_scale = expected.scale;
        now.hysteresis = hysteresis;
        for (int step = 0; step < 400; ++step) {
          const bool found_inf = std::bernoulli_distribution(often)(random);
          if (expected.scale > 1e30f) expected.scale = now.loss_scale = 16; // a window of 1 would overflow float
          const float used = now.loss_scale;
          const double bad = random() % 2 ? kInfinity : std::nan("");
          decide(now, {3, found_inf ? bad : 1, 5}, {2.5}, 0, scaling);
          expected.step(found_inf);
          ASSERT_EQ(now.loss_scale, expected.scale) << step;
          ASSERT_EQ(now.step, expected.steps) << step;
          ASSERT_EQ(now.skip != 0, found_inf) << step;
          if (found_inf) continue;
          ASSERT_EQ(now.clip, 1 / used) << step; // a power of 2
          ASSERT_EQ(now.grad_norm, 3 / static_cast<double>(used)) << step;
        }
      }
    }
  }
}

TEST_P(StepControls, ClipsToTheLargestNorm) {
  for (const double clip_grad : {0.0, 0.1, 1.0, 3.0, 1e9}) {
    for (const float scale : {1.0f, 65536.0f}) {
      StepScalars now;
      now.loss_scale = scale;
      const double first = 0.3, second = 1e-17, third = 4.1, square = static_cast<double>(scale) * scale;
      decide(now, {first * square, second * square, third * square}, {2.5}, clip_grad, {.min = scale});
      const double norm = std::sqrt(first + second + third); // powers of 2 change no bit
      EXPECT_EQ(now.grad_norm, norm);
      const double clip = clip_grad > 0 ? std::min(1.0, clip_grad / (norm + 1e-6)) : 1;
      EXPECT_EQ(now.clip, static_cast<float>(clip) / scale) << clip_grad;
    }
  }
}

TEST_P(StepControls, AddsWhatIsInOrderInThatOrder) {
  std::vector<double> squares = {1e16, 1, kInfinity, -1e16, 1}, losses = {1};
  const auto norm = [&](std::vector<std::int32_t> order) {
    StepScalars now;
    decide(now, squares, order, losses, 0, {});
    return now.grad_norm;
  };
  EXPECT_EQ(norm({0, 1, 3, 4}), 1); // 1e16 + 1 rounds to 1e16
  EXPECT_EQ(norm({0, 3, 1, 4}), std::sqrt(2.0));
}

TEST_P(StepControls, ALossThatIsNotFiniteHasTheStepSkipped) {
  for (const double loss : {kInfinity, -kInfinity, std::nan("")}) {
    StepScalars now;
    decide(now, {1, 2}, {2.5, loss, 2.5});
    EXPECT_EQ(now.skip, 1);
    EXPECT_EQ(now.step, 0);
    decide(now, {1, 2}, {2.5, 2.5, 2.5});
    EXPECT_EQ(now.skip, 0);
    EXPECT_EQ(now.step, 1);
  }
}

TEST_P(StepControls, WithoutAWindowTheScaleStaysAtItsMinimum) {
  StepScalars now;
  now.loss_scale = 512;
  for (int step = 0; step < 50; ++step) {
    decide(now, {step % 3 ? 1 : kInfinity}, {2.5}, 1, {.min = 512});
    ASSERT_EQ(now.loss_scale, 512);
  }
}

TEST_P(StepControls, NeverGrowsToInfinity) {
  StepScalars now;
  now.loss_scale = 0x1p126f;
  for (int step = 0; step < 5; ++step) decide(now, {0}, {2.5}, 1, {.window = 1});
  EXPECT_EQ(now.loss_scale, 0x1p127f);
  EXPECT_GT(now.clip, 0);
}

TEST_P(StepControls, NeedsItsScalars) {
  std::vector<double> one = {1};
  std::vector<std::int32_t> first = {0};
  const TensorView number(one.data(), DType::f64, {1}), order(first.data(), DType::i32, {1});
  EXPECT_THROW(set().step_control({number, order, number, nullptr, 0, {}}, {stream(), {}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Of, StepControls, ::testing::Values("kernels-reference", "kernels-cpu"),
                         [](const auto& of) { return std::string(of.param) == "kernels-cpu" ? "cpu" : "reference"; });

} // namespace
} // namespace triax::test
