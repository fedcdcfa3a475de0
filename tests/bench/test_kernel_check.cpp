// SPDX-License-Identifier: Apache-2.0
// Checks of kernel sets before they are timed: kernels-reference passes for all operations, and planted defects are
// found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "bench/kernel_check.hpp"
#include "bench/kernel_measure.hpp"
#include "bench/side_plugins.hpp"
#include "support/error_of.hpp"
#include "support/installation.hpp"

namespace triax::bench {
namespace {

using ::testing::HasSubstr;

enum class Defect { none, unchanged, unrepeatable, infinite };

/// Only adds, with a defect.
class DefectiveKernels final : public KernelSet {
 public:
  static inline Defect defect = Defect::none;
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
  using KernelSet::supports;

 private:
  void do_add(const Add& args, const OpContext&) override {
    auto* const y = args.y.as<float>();
    for (std::int64_t i = 0; i < args.y.elements() && defect != Defect::unchanged; ++i)
      y[i] = args.a.as<float>()[i] + args.b.as<float>()[i];
    if (defect == Defect::unrepeatable) y[0] += static_cast<float>(++calls_);
    if (defect == Defect::infinite) y[1] = INFINITY;
  }
  int calls_ = 0;
};

std::string error_with(Defect defect) {
  DefectiveKernels::defect = defect;
  triax_plugin descriptor = *plugin::load(test::plugin_file("kernels-reference"), KernelSet::kKind).descriptor;
  descriptor.name = "kernels-defective";
  descriptor.create = [](const triax_create_args*, triax_error*) -> void* {
    return static_cast<KernelSet*>(new DefectiveKernels);
  };
  descriptor.destroy = [](void* object) { delete static_cast<KernelSet*>(object); };
  plugin::Library library;
  library.descriptor = &descriptor;
  config::PluginChoice choice;
  choice.name = descriptor.name;
  choice.library = &library;
  KernelSide side(choice, 1);
  const GptOperations operations(side, {32, 2, 8, 1, 16, 0.1}, DType::f32, {"add"});
  return test::error_of([&] { check_case(side, operations.cases().at(0)); });
}

TEST(KernelCheck, FindsDefects) {
  EXPECT_THAT(error_with(Defect::unchanged), HasSubstr("kernels-defective, add: the operation did not change"));
  EXPECT_THAT(error_with(Defect::unrepeatable), HasSubstr("two calls with the same inputs gave different bits"));
  EXPECT_THAT(error_with(Defect::infinite), HasSubstr("an output is not finite"));
}

TEST(KernelCheck, MeasuresDifferences) {
  EXPECT_EQ(difference_of({{1, -4}, {0}}, {{1, -4}, {0}}), 0);
  EXPECT_DOUBLE_EQ(difference_of({{1, -4}, {2}}, {{1, -5}, {2}}), 0.2);
  EXPECT_GT(difference_of({{1e-3}}, {{0}}), allowed_difference(DType::bf16));
}

TEST(KernelMeasurement, MeasuresAllOperations) {
  KernelPlan plan;
  plan.shapes = {32, 2, 8, 2, 40, 0.1};
  plan.product = 16;
  plan.copied_mib = 1;
  plan.rounds = 1;
  plan.turn_s = 0;
  Refusals refusals;
  plan.sides = {load_side({"--plugin", test::plugin_file("kernels-reference").string(), "kernels", "kernels", {}},
                          plugin::FirstLoad::direct, refusals)};
  ASSERT_TRUE(refusals.empty());
  KernelMeasurement measurement(plan);
  std::vector<std::string> names;
  measurement.run([&](const KernelResult& result) {
    names.push_back(result.name);
    EXPECT_GT(mean_s(result.sides.at(0)), 0) << result.name;
    EXPECT_GT(roofline_s(result, measurement.rates().at(0)), 0) << result.name;
    if (result.name == "attention_fwd/plain") { // 9 of 16 scores are visible
      EXPECT_EQ(result.flops, 2 * 2.0 * 2 * 8 * 8 * 32 * 9 / 16);
    }
  });
  EXPECT_EQ(names, gpt_operation_names());
}

TEST(KernelMeasurement, CountsTheBuffersOfBothSides) {
  KernelPlan plan;
  plan.shapes = {32, 2, 8, 2, 40, 0.1};
  plan.may_be_equal = true;
  Refusals refusals;
  const Side side = load_side({"--plugin", test::plugin_file("kernels-reference").string(), "kernels", "kernels", {}},
                              plugin::FirstLoad::direct, refusals);
  ASSERT_TRUE(refusals.empty());
  constexpr std::int64_t kFree = 200'000'000; // a product and a copy of the default sizes need 147 MB
  plan.sides = {side};
  EXPECT_TRUE(check(plan, kFree).empty());
  plan.sides = {side, side};
  EXPECT_EQ(check(plan, kFree).size(), 1u);
  EXPECT_TRUE(check(plan, 2 * kFree).empty());
}

TEST(KernelMeasurement, RefusesShapesThatNoDeviceHolds) {
  KernelPlan plan;
  plan.shapes = {1 << 20, 4, 1 << 20, 1 << 20, 1 << 20, 0.1}; // the bytes of a stream are 2^62
  const Refusals refused = check(plan, 0);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.front().code, ErrorCode::kOutOfMemory);
  EXPECT_THAT(refused.front().message, HasSubstr("but at most 1 PB are allowed"));
  EXPECT_THAT(refused.front().hint, HasSubstr("use a smaller --hidden"));
}

TEST(KernelMeasurement, CountsBuffersOfTheOperationsOnly) {
  const GptShapes shapes{64, 4, 32, 2, 100'000, 0.1};
  const double all = buffer_bytes(shapes, DType::f32, {}), add = buffer_bytes(shapes, DType::f32, {"add"});
  EXPECT_GT(add, 4.0 * 3 * 64 * 32 * 2);
  EXPECT_GT(all, add + 4.0 * 2 * 100'000 * 64); // the table and its gradient
}

TEST(KernelMeasurement, RefusesUnknownOperations) {
  KernelPlan plan;
  plan.names = {"linear_fwd", "norm_fwd", "norm_fvd"};
  const Refusals refused = check(plan, 0);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.front().message, "--op norm_fvd is not an operation of a GPT");
  EXPECT_EQ(refused.front().hint, "did you mean norm_fwd?");
}

} // namespace
} // namespace triax::bench
