// SPDX-License-Identifier: Apache-2.0
// A run with ranks as processes that moves to other ranks, also to threads, and back: its records are those of a run
// that never stopped. tests/train/test_resume_layouts.cpp has more cases, with threads only.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "launch/process_run.hpp"
#include "launch/thread_run.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using Keys = std::vector<std::string>;

Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Keys ranks(int pipeline, int tensor, int data) {
  return {"parallel.pipeline=" + std::to_string(pipeline), "parallel.tensor=" + std::to_string(tensor),
          "parallel.data=" + std::to_string(data)};
}

class ResumeProcesses : public ProcessRun {
 protected:
  ResumeProcesses() {
    train(kSaved + kThreads, 6, "whole");
    train(kSaved, 2, "saved");
  }
  /// Continues the run in this folder to a step.
  void train(const Keys& keys, int stop_at, const std::string& folder = "run") const {
    TrainProcess job = start(Keys{"checkpoint.resume=auto", "model.layers=8", "model.heads=4", "train.steps=6",
                                  "eval.every=1", "eval.batches=1", "data.validation=text",
                                  "train.stop_at=" + std::to_string(stop_at), "run.dir=" + folder} +
                             keys);
    ASSERT_EQ(job.wait(), 0) << job.err();
  }
  /// A run of two steps that were saved by processes.
  void begin_with_saved() const {
    fs::remove_all(work_ / "run");
    fs::copy(work_ / "saved", work_ / "run", fs::copy_options::recursive);
  }
  void expect_near_whole(double bound) const {
    const std::vector<Json> of = records(work_ / "run/metrics.jsonl"), whole = records(work_ / "whole/metrics.jsonl");
    ASSERT_EQ(of.size(), 6u);
    ASSERT_EQ(whole.size(), 6u);
    for (std::size_t i = 0; i < of.size(); ++i)
      for (const char* key : {"loss", "grad_norm", "eval_loss"}) {
        const double value = of[i][key], wanted = whole[i][key];
        EXPECT_LE(std::abs(value - wanted), bound * std::abs(wanted)) << key << " of step " << i + 1;
      }
  }

  const Keys kSaved = ranks(2, 2, 2), kThreads = {"comm.plugin=comm-local"};
  const Keys kInterleaved = {"schedule.plugin=sched-interleaved", "parallel.chunks=2"};
};

TEST_F(ResumeProcesses, OfTheSameSizesChangeNoBit) {
  const std::vector<Keys> layouts = {ranks(1, 2, 2), ranks(1, 2, 2) + kThreads,
                                     ranks(4, 2, 2) + kInterleaved + kThreads,
                                     ranks(3, 2, 2) + Keys{"parallel.split=[2, 5, 1]"} + kThreads};
  for (const Keys& there : layouts) {
    begin_with_saved();
    train(there, 4);
    train(kSaved, 6);
    expect_near_whole(0);
  }
}

/// The bound is that of test_resume_layouts.cpp in fp32.
TEST_F(ResumeProcesses, OfOtherSizesDifferByRounding) {
  const std::vector<Keys> layouts = {ranks(1, 1, 1), ranks(4, 1, 2) + kInterleaved, ranks(1, 4, 1),
                                     ranks(3, 2, 1) + Keys{"parallel.split=[2, 5, 1]"}};
  for (const Keys& there : layouts) {
    begin_with_saved();
    train(there, 4);
    train(kSaved, 6);
    expect_near_whole(1e-6);
  }
}

} // namespace
} // namespace triax::test
