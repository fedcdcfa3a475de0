// SPDX-License-Identifier: Apache-2.0
// Training on a GPU: the losses of the reference, and the same bits in every run.
#include <gmock/gmock.h>

#include <cmath>

#include "support/gpu_kernels_suite.hpp"
#include "train/tiny_run.hpp"

namespace triax::test {
namespace {

struct Curve {
  std::vector<double> losses, norms;
  double held_out = 0;
  bool operator==(const Curve&) const = default;
};

Curve curve_of(const test::TinyRun& run, int steps) {
  test::TinyRank rank(run);
  Curve curve;
  for (int step = 0; step < steps; ++step) {
    const train::StepResult result = rank->step();
    curve.losses.push_back(result.loss);
    curve.norms.push_back(result.grad_norm);
  }
  curve.held_out = rank->evaluate().loss;
  return curve;
}

struct GpuRun : test::TinyRun {
  explicit GpuRun(const std::string& precision = "fp32") {
    keys["kernels.plugin"] = "\"" TRIAX_KERNELS "\"";
    keys["train.precision"] = "\"" + precision + "\"";
  }
};

using ::testing::ContainsRegex;
using Training = OnGpu;

TEST_F(Training, HasTheLossesOfTheReference) {
  for (const char* optimizer : {"\"optim-adamw\"", "\"optim-sgd\""}) {
    GpuRun run;
    test::TinyRun reference;
    run.keys["optimizer.plugin"] = reference.keys["optimizer.plugin"] = optimizer;
    const Curve got = curve_of(run, 6), want = curve_of(reference, 6);
    for (std::size_t i = 0; i < want.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], want.losses[i], 1e-4 * want.losses[i]) << optimizer << ", step " << i + 1;
      EXPECT_NEAR(got.norms[i], want.norms[i], 1e-3 * want.norms[i]) << optimizer << ", step " << i + 1;
    }
    EXPECT_NEAR(got.losses[0], want.losses[0], 1e-6 * want.losses[0]);
    EXPECT_NEAR(got.held_out, want.held_out, 1e-4 * want.held_out);
  }
}

TEST_F(Training, InBf16StaysNearTheReference) {
  const Curve got = curve_of(GpuRun("bf16"), 6), want = curve_of(test::TinyRun(), 6);
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 0.02 * want.losses[i]);
}

TEST_F(Training, GivesTheSameBitsInEveryRun) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Curve first = curve_of(GpuRun(precision), 4);
    EXPECT_TRUE(first == curve_of(GpuRun(precision), 4)) << precision;
    EXPECT_TRUE(std::isfinite(first.held_out));
  }
}

TEST_F(Training, TheScheduleChangesNoBit) {
  GpuRun other;
  other.keys["schedule.plugin"] = "\"sched-1f1b\"";
  EXPECT_TRUE(curve_of(GpuRun(), 4) == curve_of(other, 4));
}

/// The step is computed again without its captured graph, and the one after it is launched from the graph.
TEST_F(Training, NamesTheFirstValueThatIsNotFinite) {
  for (const char* graph : {"false", "true"}) {
    GpuRun run;
    run.keys["train.cuda_graph"] = graph;
    run.keys["train.nonfinite"] = "\"skip\"";
    test::TinyRank rank(run);
    for (int step = 0; step < 4; ++step) EXPECT_FALSE(rank->step().nonfinite);
    const TensorView weight = rank->parameter("block 1/mlp.up.weight").master.flat().slice(0, 3, 4);
    const auto before = rank->device().allocate(sizeof(float), MemoryKind::device);
    const TensorView kept(before->data(), DType::f32, {1});
    rank->device().copy(kept, weight, rank->stream());
    rank->device().fill(weight, std::nan(""), rank->stream());
    const train::StepResult skipped = rank->step();
    ASSERT_TRUE(skipped.nonfinite) << graph;
    EXPECT_THAT(skipped.nonfinite->message(),
                ContainsRegex("; first on rank 0: the output of block 1 in microbatch 0 \\([0-9]+ of 48 values\\); "
                              "block 1/mlp.up.weight has 1 such value"))
        << graph;
    rank->device().copy(weight, kept, rank->stream());
    const train::StepResult next = rank->step();
    EXPECT_FALSE(next.nonfinite) << graph;
    EXPECT_TRUE(std::isfinite(next.loss)) << graph;
  }
}

} // namespace
} // namespace triax::test
