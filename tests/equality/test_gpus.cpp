// SPDX-License-Identifier: Apache-2.0
// The bits of runs on GPUs: over each GPU kernel set and communicator, pipeline size, chunks, schedule, captured steps
// and a communicator for each edge change no bit. Ranks are threads, each with a GPU; a case that needs more GPUs than
// there are is left out, and a test without any case is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "equality/same_bits.hpp"
#include "triax/cuda/device.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

class OnGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    ASSERT_EQ(cudaGetDeviceCount(&gpus_), cudaSuccess);
  }
  void TearDown() override {
    if (!HasFailure() && !IsSkipped() && compared_ == 0) GTEST_SKIP() << "needs more than " << gpus_ << " GPUs";
  }
  bool fits(const Case& run) const { return run.world() <= gpus_; }

  /// Each case gives the bits of GPipe on one pipeline rank, trained with `of`.
  void expect_bits(const std::vector<Case>& cases, const Training& training, const Training& of) {
    for (const Case& run : cases) {
      if (!fits(run)) continue;
      expect_as_expected(run, training, &expected(run, of));
      ++compared_;
      if (HasFailure()) break; // the other cases would fail too
    }
  }
  void expect_bits(const std::vector<Case>& cases, const Training& training) { expect_bits(cases, training, training); }

  static Training over(const std::string& comm) { return {.clip_grad = 0.1, .comm = comm, .on_gpus = true}; }

 private:
  int gpus_ = 0, compared_ = 0;
};

std::vector<Case> with_kernels(std::vector<Case> cases, const std::string& kernels) {
  for (Case& run : cases) run.kernels = kernels;
  return cases;
}

struct Sizes {
  int tensor, data;
};
class AnyPipeline : public OnGpus, public ::testing::WithParamInterface<Sizes> {};

TEST_P(AnyPipeline, ChunksAndScheduleChangeNoBit) {
  expect_bits(with_kernels(pipeline_cases(GetParam().tensor, GetParam().data), "kernels-fused"), over("comm-nccl"));
}

INSTANTIATE_TEST_SUITE_P(OverNccl, AnyPipeline,
                         ::testing::Values(Sizes{1, 1}, Sizes{2, 1}, Sizes{4, 1}, Sizes{1, 2}, Sizes{2, 2},
                                           Sizes{1, 3}),
                         [](const auto& of) { return text("t{}_d{}", of.param.tensor, of.param.data); });

/// Pipelines with tensor and data ranks, of every kind of schedule.
const std::vector<Case>& mixed_cases() {
  static const std::vector<Case> kCases = {
      {2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-fused"},
      {2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-fused"},
      {.pipeline = 2,
       .tensor = 2,
       .chunks = 2,
       .scheduler = "sched-zb-v",
       .kernels = "kernels-fused",
       .scatter_gather = true},
      {4, 1, 2, 1, "sched-zb-h1", 1, 6, "kernels-fused"},
  };
  return kCases;
}

TEST_F(OnGpus, Kernels) {
  expect_bits(with_kernels(mixed_cases(), "kernels-cublas"), over("comm-nccl"));
}

TEST_F(OnGpus, Bf16) {
  Training bf16 = over("comm-nccl");
  bf16.precision = "bf16";
  expect_bits(mixed_cases(), bf16);
  expect_bits(with_kernels({mixed_cases().front()}, "kernels-cublas"), bf16);
}

/// The first steps overflow.
TEST_F(OnGpus, Fp16) {
  Training fp16 = over("comm-nccl");
  fp16.precision = "fp16";
  fp16.initial_scale = 0x1p23;
  fp16.steps = 5;
  expect_bits(mixed_cases(), fp16);
  const Case& run = mixed_cases().front();
  if (!fits(run)) return;
  const KeptRank& one = expected(run, fp16).front();
  EXPECT_TRUE(one.skipped.front());
  EXPECT_FALSE(one.skipped.back());
}

#ifdef TRIAX_WITH_UCX
TEST_F(OnGpus, OverUcx) {
  expect_bits(mixed_cases(), over("comm-ucx"));
}

/// Tensor and data groups use the GPUs' streams; the pipeline's edges are staged through the host.
TEST_F(OnGpus, OverNcclAndUcx) {
  Training mixed = over("comm-nccl");
  mixed.pipeline_comm = "comm-ucx";
  expect_bits(mixed_cases(), mixed, over("comm-nccl"));
}
#endif

TEST_F(OnGpus, ACommunicatorForEachEdge) {
  Training edges = over("comm-nccl");
  edges.pipeline_comm = "comm-nccl";
  edges.edge_communicators = true;
  expect_bits(mixed_cases(), edges, over("comm-nccl"));
}

/// The third step is captured. It and the two after it must equal uncaptured ones.
TEST_F(OnGpus, CapturedSteps) {
  Training walked = over("comm-nccl");
  walked.steps = 5;
  Training captured = walked;
  captured.cuda_graph = true;
  expect_bits(mixed_cases(), captured, walked);
  expect_bits(
      {{1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-fused"}, {1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-cublas"}},
      captured, walked);
}

} // namespace
} // namespace triax::equality
