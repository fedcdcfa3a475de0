// SPDX-License-Identifier: Apache-2.0
// model-gpt's backward: compared with finite differences of its forward, and f32 with f64.
#include <gtest/gtest.h>

#include <cmath>

#include "gpt_run.hpp"

namespace triax::model_gpt_test {
namespace {

/// Indices of the elements to test: first, last, and some between.
std::vector<std::int64_t> elements_of(const TensorView& view) {
  const std::int64_t n = view.elements();
  return {0, n / 3, n / 2 + 1, n - 2, n - 1};
}

// The two tied parameters have separate gradients; this test changes them separately.
void compare_with_differences(const Setting& setting) {
  const auto device = make_host_device();
  GptRun run(setting, *device);
  run.loss(kSamples);
  run.backward();
  constexpr double kStep = 1e-4;
  for (Parameter& parameter : run.parameters()) {
    for (const std::int64_t i : elements_of(parameter.value)) {
      double& value = parameter.value.as<double>()[i];
      const double kept = value;
      // The error of the four-point formula is of the order of kStep^4.
      const auto moved = [&](double by) {
        value = kept + by * kStep;
        return run.loss(kSamples);
      };
      const double slope = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * kStep);
      value = kept;
      const double gradient = parameter.gradient.as<double>()[i];
      EXPECT_NEAR(gradient, slope, 1e-8 * std::abs(slope) + 1e-10) << parameter.name << ", element " << i;
    }
  }
}

TEST(Gradients, AreTheSlopeOfTheLoss) {
  compare_with_differences({});
}

TEST(Gradients, AreTheSlopeOfTheLossUnderDropout) {
  compare_with_differences({.layers = 1, .dropout = 0.25});
}

TEST(Gradients, Accumulate) {
  const auto device = make_host_device();
  GptRun once({}, *device), twice({}, *device);
  once.loss(kSamples);
  once.backward();
  for (int i = 0; i < 2; ++i) {
    twice.loss(kSamples);
    twice.backward();
  }
  for (std::size_t i = 0; i < once.parameters().size(); ++i) {
    const std::vector<double> single = values_of(once.parameters()[i].gradient);
    const std::vector<double> both = values_of(twice.parameters()[i].gradient);
    for (std::size_t j = 0; j < single.size(); ++j)
      ASSERT_NEAR(both[j], 2 * single[j], 1e-14 + 1e-12 * std::abs(single[j])) << once.parameters()[i].name;
  }
}

TEST(Gradients, InSingleAreThoseInDoubleRounded) {
  const auto device = make_host_device();
  GptRun fine({.dropout = 0.25}, *device), coarse({.dropout = 0.25, .compute = DType::f32}, *device);
  EXPECT_NEAR(coarse.loss(kSamples), fine.loss(kSamples), 1e-6);
  fine.backward();
  coarse.backward();
  for (std::size_t i = 0; i < fine.parameters().size(); ++i) {
    const std::vector<double> a = values_of(fine.parameters()[i].gradient);
    const std::vector<double> b = values_of(coarse.parameters()[i].gradient);
    double distance = 0, size = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      distance += (a[j] - b[j]) * (a[j] - b[j]);
      size += a[j] * a[j];
    }
    EXPECT_LT(std::sqrt(distance), 2e-6 * std::sqrt(size) + 1e-9) << fine.parameters()[i].name;
  }
}

} // namespace
} // namespace triax::model_gpt_test
