// SPDX-License-Identifier: Apache-2.0
// The template of an optimizer, Lion: the published formula, skipped steps, dry runs, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "plugin/loader.hpp"
#include "triax/half.hpp"
#include "triax/optimizer.hpp"
#include "triax/parallel.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::test {
namespace {

constexpr double kLr = 0.125, kClip = 0.5, kDecay = 0.25; // exact in float, the type of StepScalars
constexpr double kBeta1 = 0.75, kBeta2 = 0.5;

class OptimizerTemplate : public ::testing::Test {
 protected:
  static Options betas() {
    Options out;
    out.set("beta1", kBeta1);
    out.set("beta2", kBeta2);
    return out;
  }
  static TensorView view(std::vector<double>& of) {
    return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}};
  }
  ParameterShard shard() {
    return {.name = "w",
            .spec = &spec_,
            .master = view(master_),
            .gradient = view(gradient_),
            .working = {working_.data(), DType::bf16, Shape{3}},
            .state = state_};
  }
  void update(const ParameterShard& shard, const StepScalars& scalars) {
    optimizer_->step(
        {&shard, 1},
        {.scalars = &scalars, .weight_decay = kDecay, .groups = groups_, .scratch = {}, .op = {*stream_, {}}},
        kernels_);
  }

  const Groups groups_;
  Options options_ = betas();
  Layout layout_ = Layout::ptd(1, 1, 1);
  plugin::Instance<Optimizer> optimizer_ = plugin::create<Optimizer>(
      plugin::load(TEMPLATES "/optim-template.so", "optimizer"), PluginContext{options_, null_log(), layout_});
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  reference_kernels::ReferenceKernels kernels_;
  std::vector<double> master_{1, -2, 0.5}, gradient_{0.3, -0.7, 4}, momentum_ = std::vector<double>(3);
  std::vector<Bf16> working_ = std::vector<Bf16>(3);
  std::vector<TensorView> state_{view(momentum_)};
  ParamSpec spec_ = replicated("w", {3}, {}, true);
};

TEST_F(OptimizerTemplate, FollowsTheFormula) {
  EXPECT_EQ(optimizer_->traits().state, std::vector<std::string>{"momentum"});
  std::vector<double> p = master_, m(3);
  StepScalars scalars{.lr = kLr, .clip = kClip};
  for (int step = 1; step <= 4; ++step) {
    scalars.step = step;
    update(shard(), scalars);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = gradient_[i] * kClip, direction = kBeta1 * m[i] + (1 - kBeta1) * g;
      p[i] -= kLr * ((direction > 0 ? 1 : -1) + kDecay * p[i]);
      m[i] = kBeta2 * m[i] + (1 - kBeta2) * g;
      EXPECT_NEAR(master_[i], p[i], 1e-12) << "step " << step << ", element " << i;
      EXPECT_EQ(static_cast<float>(working_[i]), static_cast<float>(Bf16(master_[i]))) << "element " << i;
      gradient_[i] *= -2; // the sign of the update changes, too
    }
  }
}

TEST_F(OptimizerTemplate, DecaysOnlyWhereTheModelAsks) {
  spec_.decay = false;
  gradient_ = {0, 0, 0};
  const std::vector<double> before = master_;
  update(shard(), {.lr = kLr, .clip = kClip, .step = 1});
  EXPECT_EQ(master_, before);
}

TEST_F(OptimizerTemplate, ASkippedStepChangesNothing) {
  gradient_[1] = std::nan("");
  const std::vector<double> before = master_;
  update(shard(), {.lr = kLr, .clip = kClip, .skip = 1});
  EXPECT_EQ(master_, before);
  EXPECT_EQ(momentum_, std::vector<double>(3));
}

TEST_F(OptimizerTemplate, ADryRunReadsNoMemory) {
  ParameterShard planned = shard();
  planned.master = {nullptr, DType::f64, Shape{3}};
  planned.gradient = planned.working = planned.master;
  optimizer_->step({&planned, 1}, {.scalars = nullptr, .groups = groups_, .scratch = {}, .op = {*stream_, {}}},
                   kernels_);
}

TEST_F(OptimizerTemplate, RefusesGpusAndNarrowMasterWeights) {
  EXPECT_TRUE(optimizer_->supports({DType::f32, DeviceKind::host}).empty());
  EXPECT_EQ(optimizer_->supports({DType::bf16, DeviceKind::cuda}).size(), 2u);
}

} // namespace
} // namespace triax::test
