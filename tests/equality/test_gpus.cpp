// SPDX-License-Identifier: Apache-2.0
// The bits of runs on GPUs: over each GPU kernel set and communicator, pipeline size, chunks, schedule, captured steps
// and a communicator for each edge change no bit of losses and norms. A loss depends on all weights, and a norm on all
// gradients. Cases that need more GPUs than there are are left out.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "equality/gpu_run.hpp"

namespace triax::equality {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNccl = "comm-nccl";
constexpr const char* kUcx = "comm-ucx";
constexpr const char* kBf16 = " train.precision=bf16";
/// The first steps overflow, and are skipped in every layout.
constexpr const char* kFp16 = " train.precision=fp16 loss_scale.initial=67108864 loss_scale.hysteresis=1";

class OnGpus : public GpuRun {
 protected:
  void TearDown() override {
    if (!HasFailure() && !IsSkipped() && compared_ == 0) GTEST_SKIP() << "needs more than " << gpus_ << " GPUs";
  }

  /// Each case gives the records of GPipe on one pipeline rank over `comm`. `more`: further keys of both runs;
  /// `more_of_case`: further keys of the case only.
  void expect_bits(const std::vector<Case>& cases, const std::string& comm, const std::string& more = "",
                   const std::string& more_of_case = "") {
    for (const Case& run : cases) {
      ASSERT_TRUE(has_keys(run)) << to_text(run);
      if (!has_gpus_for(run)) continue;
      const std::vector<nlohmann::json>& want = expected(run, comm, more);
      const std::vector<nlohmann::json> got = records(keys_of(run, comm) + more + more_of_case, run.world());
      EXPECT_EQ(got, want) << to_text(run) << more << more_of_case;
      ++compared_;
      if (HasFailure()) break; // the other cases would fail too
    }
  }

  const std::vector<nlohmann::json>& expected(Case run, const std::string& comm, const std::string& more) {
    run.pipeline = run.chunks = 1;
    run.scheduler = "sched-gpipe";
    run.group = 0;
    run.shard.clear();
    run.scatter_gather = run.recompute = run.cheap = run.partition = run.host_inputs = false;
    const std::string keys = keys_of(run, comm) + more;
    const auto [at, is_new] = known_.try_emplace(keys);
    if (is_new) {
      at->second = records(keys, run.world());
      EXPECT_EQ(at->second.size(), more.find("train.steps=3") == std::string::npos ? 4u : 3u);
    }
    return at->second;
  }

 private:
  std::map<std::string, std::vector<nlohmann::json>> known_; // by keys
  int compared_ = 0;
};

/// Cases of test_equality with these tensor and data sizes: with pipelines alone each schedule once, else two cases;
/// all of those that GPUs can run with scripts/equality --all.
std::vector<Case> cases_of(int tensor, int data) {
  std::vector<Case> out;
  std::set<std::string> taken;
  for (Case run : pipeline_cases(tensor, data)) {
    if (!GpuRun::has_keys(run) || run.pipeline == 1) continue;
    if (!all_asked()) {
      if (!taken.insert(run.scheduler).second) continue;
      if (tensor * data > 1 && taken.size() > 2) break;
    }
    run.kernels = "kernels-fused";
    run.layers = run.stages();
    out.push_back(run);
  }
  return out;
}

std::vector<Case> with_cublas(std::vector<Case> cases) {
  for (Case& run : cases) run.kernels = "kernels-cublas";
  return cases;
}

struct Sizes {
  int tensor, data;
};
class AnyPipeline : public OnGpus, public ::testing::WithParamInterface<Sizes> {};

TEST_P(AnyPipeline, ChunksAndScheduleChangeNoBit) {
  const std::string keys = " train.steps=3 eval.every=3 eval.sample=line eval.sample_tokens=3";
  const std::vector<Case> cases = cases_of(GetParam().tensor, GetParam().data);
  expect_bits(cases, kNccl, keys);
  if (!all_asked()) return;
  expect_bits(with_cublas(cases), kNccl, keys);
#ifdef TRIAX_WITH_UCX
  expect_bits(cases, kUcx, keys);
  expect_bits(with_cublas(cases), kUcx, keys);
#endif
}

/// A key that is missing would leave a run that its name does not describe.
TEST(GpuCases, KeysNameAllThatACaseDivides) {
  const Case whole{.pipeline = 2, .data = 2};
  EXPECT_THAT(GpuRun::keys_of(whole, kNccl), Not(HasSubstr("optimizer.shard")));
  for (const char* shard : {"states", "gradients", "parameters"}) {
    Case run = whole;
    run.shard = shard;
    EXPECT_THAT(GpuRun::keys_of(run, kNccl), HasSubstr(text(" optimizer.shard={}", shard)));
  }
  Case run = whole;
  run.offload = true;
  EXPECT_FALSE(GpuRun::has_keys(run));
}

INSTANTIATE_TEST_SUITE_P(OnGpus, AnyPipeline,
                         ::testing::Values(Sizes{1, 1}, Sizes{2, 1}, Sizes{4, 1}, Sizes{1, 2}, Sizes{2, 2},
                                           Sizes{1, 3}),
                         [](const auto& of) { return text("t{}_d{}", of.param.tensor, of.param.data); });

const Case kThreeAxes{2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-fused", 2};
const Case kDividedPositions{.pipeline = 2,
                             .tensor = 2,
                             .data = 2,
                             .scheduler = "sched-zb-h1",
                             .kernels = "kernels-fused",
                             .layers = 2,
                             .recompute = true,
                             .sequence_parallel = true};

/// Tensor and data ranks, and split backwards with chunks and scattered boundaries; with scripts/equality --all also
/// interleaved chunks and a longer pipeline.
std::vector<Case> mixed_cases() {
  std::vector<Case> out = {kThreeAxes,
                           {.pipeline = 2,
                            .tensor = 2,
                            .chunks = 2,
                            .scheduler = "sched-zb-v",
                            .kernels = "kernels-fused",
                            .layers = 4,
                            .scatter_gather = true}};
  if (all_asked()) {
    out.push_back({2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-fused", 5});
    out.push_back({4, 1, 2, 1, "sched-zb-h1", 1, 6, "kernels-fused", 5});
  }
  return out;
}

TEST_F(OnGpus, OfKernelsCublas) {
  expect_bits(with_cublas(mixed_cases()), kNccl);
}

/// With GELU in the product of fp32, and after it in bf16.
TEST_F(OnGpus, WithCheapRecomputation) {
  Case run{
      .pipeline = 2, .tensor = 2, .scheduler = "sched-zb-h1", .kernels = "kernels-fused", .layers = 2, .cheap = true};
  expect_bits({run}, kNccl);
  expect_bits({run}, kNccl, " train.precision=bf16 kernels.separate_gelu=true");
  run.kernels = "kernels-cublas";
  expect_bits({run}, kNccl, " train.precision=bf16");
}

/// Grouped heads, all of Qwen's options and scaled rotary positions. Options of another plugin in the file do not
/// count.
constexpr const char* kLlama =
    " model.plugin=model-llama model.hidden=16 model.heads=4 model.kv_heads=2 model.head_size=8 model.sequence=8 "
    "model.qkv_bias=true model.qk_norm=true model.tied=true model.rope_scaling=llama3 model.rope_original_sequence=16";

/// A wrong rotation is the same in every layout, so the first loss is also that of kernels-cpu.
TEST_F(OnGpus, OfLlama) {
  const Case run{2, 2, 1, 1, "sched-1f1b", 1, 4, "kernels-fused", 2};
  const std::string fp32 = kLlama + std::string(" train.steps=3 eval.every=3");
  const std::vector<Case> runs = {run, with_cublas({run}).front()};
  expect_bits(runs, kNccl, fp32);
  expect_bits({run}, kNccl, fp32 + " train.precision=bf16");
  if (!has_gpus_for(run)) return;
  Case on_cpu = run;
  on_cpu.kernels = "kernels-cpu";
  const std::vector<nlohmann::json>& cpu = expected(on_cpu, "comm-local", fp32);
  for (const Case& gpu : runs) {
    const std::vector<nlohmann::json>& steps = expected(gpu, kNccl, fp32);
    ASSERT_FALSE(steps.empty() || cpu.empty());
    EXPECT_NEAR(steps.front().at("loss").get<double>(), cpu.front().at("loss").get<double>(), 1e-5) << to_text(gpu);
  }
}

TEST_F(OnGpus, InBf16) {
  expect_bits(mixed_cases(), kNccl, kBf16);
  expect_bits(with_cublas({kThreeAxes}), kNccl, kBf16);
}

TEST_F(OnGpus, WithDividedPositionsAndRecomputation) {
  expect_bits({kDividedPositions}, kNccl, kBf16, " train.cuda_graph=true");
}

/// The host updates with AdamW of kernels-cpu, which rounds otherwise than that of kernels-fused.
TEST_F(OnGpus, WhereTheHostUpdates) {
  const std::string keys = kBf16 + std::string(" train.clip_grad=0.5");
  Case run = kThreeAxes;
  run.host_update = true;
  expect_bits({run}, kNccl, keys);
  run.shard = "states";
  expect_bits({run}, kNccl, keys);
  expect_bits(with_cublas({run}), kNccl, kFp16);
  expect_bits({run}, kNccl, keys + " memory.offload_delayed_update=true memory.offload_warmup_steps=1");
  if (!has_gpus_for(run)) return;
  Case on_device = run;
  on_device.host_update = false;
  const std::vector<nlohmann::json>& host = expected(run, kNccl, keys);
  const std::vector<nlohmann::json>& device = expected(on_device, kNccl, keys);
  ASSERT_EQ(host.size(), device.size());
  for (std::size_t step = 0; step < host.size(); ++step) {
    if (!host[step].contains("loss")) continue;
    EXPECT_NEAR(host[step].at("loss").get<double>(), device[step].at("loss").get<double>(), 1e-2) << step;
  }
}

/// Copies to and from the host are on a separate stream, also in a captured step.
TEST_F(OnGpus, WithInputsOfRecomputedBlocksOnTheHost) {
  const Case run{.pipeline = 2,
                 .tensor = 2,
                 .scheduler = "sched-1f1b",
                 .kernels = "kernels-fused",
                 .layers = 4,
                 .recompute = true,
                 .partition = true,
                 .host_inputs = true};
  expect_bits({run}, kNccl, kBf16);
  expect_bits({run}, kNccl, kBf16, " train.cuda_graph=true");
}

TEST_F(OnGpus, InFp16) {
  expect_bits(mixed_cases(), kNccl, kFp16);
  expect_bits(with_cublas({kThreeAxes}), kNccl, kFp16);
  if (!has_gpus_for(kThreeAxes)) return;
  const std::vector<nlohmann::json>& steps = expected(kThreeAxes, kNccl, kFp16);
  ASSERT_FALSE(steps.empty());
  EXPECT_TRUE(steps.front().at("skipped").get<bool>());
}

TEST_F(OnGpus, WithACommunicatorForEachEdge) {
  expect_bits(mixed_cases(), kNccl, "", " comm.pipeline.plugin=comm-nccl comm.pipeline.edge_communicators=true");
}

/// The third step is captured. It and the steps after it equal steps that are not.
TEST_F(OnGpus, OfCapturedSteps) {
  std::vector<Case> cases = mixed_cases();
  cases.push_back({1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-fused", 3});
  cases.push_back({1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-cublas", 2});
  expect_bits(cases, kNccl, "", " train.cuda_graph=true");
  expect_bits({kThreeAxes}, kNccl, " train.precision=bf16 eval.every=2 eval.sample=line eval.sample_tokens=3",
              " train.cuda_graph=true"); // a text before the capture, and one after it
}

/// The weights of a stage are gathered on another stream than that of the passes, also in a captured step and in a
/// text.
TEST_F(OnGpus, WithDividedParameters) {
  const Case run{1, 1, 2, 3, "sched-breadth-first", 1, 4, "kernels-fused", 3};
  const std::string keys = " train.precision=bf16 eval.every=4 eval.sample=line eval.sample_tokens=3";
  expect_bits({run}, kNccl, keys, " optimizer.shard=parameters");
  expect_bits({run}, kNccl, keys, " optimizer.shard=parameters train.cuda_graph=true");
}

/// Each rank of the data group keeps and updates its part, and with gradients also receives only that part of the sums.
TEST_F(OnGpus, WithDividedStatesAndGradients) {
  Case run{2, 1, 2, 2, "sched-interleaved", 1, 4, "kernels-fused", 4};
  std::vector<Case> cases;
  for (const char* shard : {"states", "gradients"}) {
    run.shard = shard;
    cases.push_back(run);
  }
  expect_bits(cases, kNccl, kBf16);
}

#ifdef TRIAX_WITH_UCX
TEST_F(OnGpus, OverUcx) {
  expect_bits(mixed_cases(), kUcx);
  expect_bits(with_cublas({kThreeAxes}), kUcx, kBf16);
  if (!all_asked()) return;
  expect_bits(with_cublas(mixed_cases()), kUcx);
  for (const char* precision : {kBf16, kFp16}) expect_bits(mixed_cases(), kUcx, precision);
}

/// Tensor and data groups use the GPUs' streams; the pipeline's edges are staged through the host.
TEST_F(OnGpus, OverNcclAndUcx) {
  const std::string edges = " comm.pipeline.plugin=comm-ucx";
  expect_bits(mixed_cases(), kNccl, "", edges);
  if (!all_asked()) return;
  expect_bits(with_cublas(mixed_cases()), kNccl, "", edges);
  for (const char* precision : {kBf16, kFp16}) expect_bits(mixed_cases(), kNccl, precision, edges);
}
#endif

} // namespace
} // namespace triax::equality
