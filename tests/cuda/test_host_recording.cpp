// SPDX-License-Identifier: Apache-2.0
// Captured steps on the CUDA host emulator have the same bits as steps that run without capture.
#include <gtest/gtest.h>

#include <vector>

#include "support/gpu_kernels_suite.hpp"
#include "support/host_cuda/launch.hpp"
#include "train/tiny_run.hpp"

namespace triax::test {
namespace {

std::vector<double> curve_of(bool recorded) {
  test::TinyRun run;
  run.keys["kernels.plugin"] = "\"" TRIAX_KERNELS "\"";
  run.keys["plugins.path"] = "[\"" + (test::installation() / kKernelsFolder).string() + "\"]";
  run.keys["train.cuda_graph"] = recorded ? "true" : "false";
  test::TinyRank rank(run);
  std::vector<double> curve;
  for (int step = 0; step < 6; ++step) {
    const train::StepResult result = rank->step();
    curve.push_back(result.loss);
    curve.push_back(result.grad_norm);
  }
  curve.push_back(rank->evaluate().loss);
  return curve;
}

TEST(HostRecording, ARecordedStepChangesNoBit) {
  const int before = test::host_cuda::graphs_launched();
  const std::vector<double> recorded = curve_of(true);
  EXPECT_EQ(test::host_cuda::graphs_launched(), before + 4) << "of six steps the first two are walked";
  EXPECT_EQ(recorded, curve_of(false));
}

} // namespace
} // namespace triax::test
