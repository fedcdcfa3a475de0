// SPDX-License-Identifier: Apache-2.0
// A run on GPUs in which a call, a kernel or a copy fails, or a rank is killed: it ends soon, reports the rank that
// failed, and keeps the records of the steps before. Failures are planned with the GPU stand-in (TRIAX_GPU_FAIL), so
// these tests are skipped on a GPU. scripts/equality --all fails every call; otherwise a sample of them fails.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "equality/gpu_run.hpp"
#include "support/gpu_stand_in.hpp"

namespace triax::equality {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Failures : public GpuRun {
 protected:
  void SetUp() override {
    GpuRun::SetUp();
    if (IsSkipped()) return;
    if (gpus_ < 4) GTEST_SKIP() << "needs 4 GPUs, and there are " << gpus_;
    if (!test::is_gpu_stand_in(*cuda::make_device({}))) GTEST_SKIP() << "failures are planned with the GPU stand-in";
    use(kKeys, 2);
  }

  /// The keys of the runs, which have `steps` steps.
  void use(const std::string& keys, std::size_t steps) {
    keys_ = keys;
    want_ = records(keys, 4);
    ASSERT_EQ(want_.size(), steps);
  }

  /// Lets the k-th `call` of rank 1 fail, for k = 1, 2, ... until no call fails; with `sampled`, k grows by half.
  void fail_each(const std::string& call, bool sampled) {
    for (std::int64_t k = 1;; k += sampled && !all_asked() ? 1 + k / 2 : 1) {
      if (!fails(call, k)) {
        EXPECT_GT(k, 1) << "no call failed";
        return;
      }
      if (HasFailure()) return;
      ASSERT_LT(k, 100'000);
    }
  }
  /// Lets the k-th `call` of rank 1 fail; with scripts/equality --all each.
  void fail_one(const std::string& call, std::int64_t k) {
    if (all_asked()) return fail_each(call, false);
    EXPECT_TRUE(fails(call, k)) << "no call failed";
  }

  test::Outcome train(const std::string& failures, const std::string& run_folder) const {
    return test::run_command(text("cd '{}' && TRIAX_GPU_FAIL={} timeout 100 '{}' {} 2>&1", folder().path().string(),
                                  failures, (test::installation() / "bin/triax").string(),
                                  train_arguments(keys_, run_folder)));
  }

  bool has_complete_checkpoint(const std::string& run_folder) const {
    const std::filesystem::path checkpoints = folder() / run_folder / "checkpoints";
    if (!std::filesystem::exists(checkpoints)) return false;
    return std::ranges::any_of(std::filesystem::directory_iterator(checkpoints),
                               [](const auto& entry) { return entry.path().filename().string().starts_with("step-"); });
  }

  /// False: the run has fewer calls, and is as without a failure.
  bool fails(const std::string& call, std::int64_t k) {
    const std::string run_folder = text("{}-{}", call, k);
    const test::Outcome run = train(text("{}:{}@1", call, k), run_folder);
    SCOPED_TRACE(text("{} {} of rank 1 fails: exit status {}\n{}", call, k, run.status, run.text));
    if (run.status != 0) {
      expect_failure(run, run_folder);
      return true;
    }
    EXPECT_EQ(records_in(run_folder), want_);
    return false;
  }

  /// The run failed on rank 1, said so, and lost nothing.
  void expect_failure(const test::Outcome& run, const std::string& run_folder) {
    EXPECT_TRUE(run.status == 1 || run.status == 2); // 2: refused before the run began
    EXPECT_THAT(run.text, HasSubstr("rank 1"));
    const std::filesystem::path in = folder() / run_folder;
    if (!std::filesystem::exists(in / "metrics.jsonl")) return;     // before all ranks had joined
    const std::vector<nlohmann::json> got = records_in(run_folder); // each line is whole
    ASSERT_LE(got.size(), want_.size());
    std::vector<nlohmann::json> want(want_.begin(), want_.begin() + static_cast<std::ptrdiff_t>(got.size()));
    if (!got.empty() && !got.back().contains("eval_loss")) // that evaluation failed
      for (const char* of_evaluation : {"eval_loss", "eval_perplexity"}) want.back().erase(of_evaluation);
    EXPECT_EQ(got, want) << "records of the steps before the failure";
    ASSERT_TRUE(std::filesystem::exists(in / "failure.json"));
    EXPECT_EQ(nlohmann::json::parse(test::read_file(in / "failure.json")).at("rank"), 1);
  }

  static constexpr const char* kKeys =
      "parallel.pipeline=2 parallel.data=1 schedule.plugin=sched-1f1b model.layers=2 "
      "train.steps=2 eval.every=2 batch.global=2";
  std::string keys_;
  std::vector<nlohmann::json> want_;
};

TEST_F(Failures, OfEachAllocationOfDeviceMemory) {
  fail_each("cudaMalloc", false);
}
TEST_F(Failures, OfEachAllocationOfPinnedMemory) {
  fail_each("cudaHostAlloc", false);
}
TEST_F(Failures, OfAnyKernel) {
  fail_each("kernel", true);
}
TEST_F(Failures, OfAnyCopy) {
  fail_each("copy", true);
}
/// Whatever copy fails while checkpoints are written, the run continues from a complete one, to the same end.
TEST_F(Failures, OfACopyLoseNoCheckpoint) {
  use(text("{} eval.every=0 eval.batches=0 train.steps=4 checkpoint.every=1", kKeys), 4);
  int continued = 0;
  for (std::int64_t k = 8; fails("copy", k); k += all_asked() ? 1 : k / 4) {
    const std::string run_folder = text("copy-{}", k);
    const bool has_checkpoint = has_complete_checkpoint(run_folder);
    const test::Outcome run = train("", run_folder);
    ASSERT_EQ(run.status, 0) << "copy " << k << "\n" << run.text;
    if (has_checkpoint) {
      ++continued;
      EXPECT_THAT(run.text, HasSubstr("continues after step ")) << "copy " << k;
    }
    EXPECT_EQ(records_in(run_folder), want_) << "copy " << k;
  }
  EXPECT_GT(continued, 1);
}
TEST_F(Failures, OfAnyLaunch) {
  fail_each("cudaLaunchKernel", true);
}
TEST_F(Failures, OfAnEvent) {
  fail_each("cudaEventRecord", true);
}
TEST_F(Failures, OfACallOfNccl) {
  for (const char* call : {"ncclCommInitRankConfig", "ncclSend", "ncclRecv", "ncclGroupEnd"}) fail_each(call, true);
}

TEST_F(Failures, OfAProduct) {
  fail_one("cublasLtMatmul", 9);
  use(text("{} kernels.plugin=kernels-cublas", kKeys), 2);
  fail_one("cublasGemmStridedBatchedEx", 9);
}
TEST_F(Failures, OfACollective) {
  use("parallel.data=2 model.layers=1 train.steps=2 eval.every=2 batch.global=2", 2);
  fail_one("ncclAllReduce", 2);
}
TEST_F(Failures, OfACapturedStep) {
  use("parallel.pipeline=2 schedule.plugin=sched-1f1b model.layers=2 train.steps=4 eval.every=4 batch.global=2 "
      "train.cuda_graph=true",
      4);
  fail_one("cudaGraphLaunch", 2);
  fail_one("cudaGraphInstantiate", 1);
}

/// The host does not wait for the optimizer of a step, and no step follows the last one.
TEST_F(Failures, OfTheOptimizerInTheLastStep) {
  const std::string keys = "model.layers=1 train.steps=2 eval.every=0 eval.batches=0 batch.global=1";
  const auto with_failing_kernel = [&](std::int64_t k) {
    return test::run_command(text("cd '{}' && TRIAX_GPU_FAIL=kernel:{}@0 timeout 100 '{}' {} 2>&1",
                                  folder().path().string(), k, (test::installation() / "bin/triax").string(),
                                  train_arguments(keys, text("last-{}", k))));
  };
  std::int64_t fails = 1, passes = 2; // the last kernel of the run is of the optimizer
  while (with_failing_kernel(passes).status != 0) passes *= 2;
  while (passes - fails > 1) {
    const std::int64_t middle = (fails + passes) / 2;
    (with_failing_kernel(middle).status != 0 ? fails : passes) = middle;
  }
  const test::Outcome run = with_failing_kernel(fails);
  EXPECT_EQ(run.status, 1) << run.text;
  EXPECT_THAT(run.text, HasSubstr(" error rank 0: step 2"));
}

/// A rank is killed while the others wait for it in a communicator.
TEST_F(Failures, OfAKilledRank) {
  std::vector<std::string> comms{"comm-nccl"};
#ifdef TRIAX_WITH_UCX
  comms.emplace_back("comm-ucx");
#endif
  for (const std::string& comm : comms) {
    SCOPED_TRACE(comm);
    test::write_file(folder() / "kill-a-rank.sh",
                     text("cd '{}'\n'{}' {} > out 2>&1 & launcher=$!\n"
                          "while [ ! -s {}/metrics.jsonl ]; do sleep 0.02; done\n"
                          "kill -9 $(pgrep -P $launcher | tail -1)\nwait $launcher\n",
                          folder().path().string(), (test::installation() / "bin/triax").string(),
                          train_arguments(text("parallel.pipeline=2 parallel.tensor=2 train.steps=100000 eval.every=0 "
                                               "eval.batches=0 schedule.plugin=sched-1f1b comm.plugin={}",
                                               comm),
                                          comm),
                          comm));
    const test::Outcome run = test::run_command(text("timeout 100 sh '{}'", (folder() / "kill-a-rank.sh").string()));
    const std::string output = test::read_file(folder() / "out");
    EXPECT_EQ(run.status, 1) << output;
    EXPECT_THAT(output, ContainsRegex("rank [0-3]( |:).*killed by signal 9"));
    EXPECT_THAT(output, Not(HasSubstr("did not stop within"))) << "a rank that is not killed ends by itself";
    const nlohmann::json failure = nlohmann::json::parse(test::read_file(folder() / comm / "failure.json"));
    EXPECT_THAT(output, HasSubstr(text("rank {}", failure.at("rank").get<int>())));
    EXPECT_FALSE(records_in(comm).empty());
  }
}

} // namespace
} // namespace triax::equality
