// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: they compute the same, leave together, and end together when one fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include "launch/run_threads.hpp"
#include "train/tiny_run.hpp"
#include "triax/rank_activity.hpp"

namespace triax {
namespace {

using test::TinyRun;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

/// Keeps a rank's log lines of all levels from debug.
class Notes final : public Log {
 public:
  bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::debug; }
  void write(LogLevel level, std::string_view line) noexcept override {
    if (!slow.empty() && line.starts_with(slow)) std::this_thread::sleep_for(std::chrono::seconds(3));
    const std::lock_guard lock(mutex_);
    (level == LogLevel::error ? errors : others).emplace_back(line);
  }
  std::vector<std::string> errors, others;
  std::string slow; // the first characters of a line that takes 3 s

 private:
  std::mutex mutex_;
};

/// Counts a rank's steps, and calls a function at the end of each.
class Steps final : public executor::WalkObserver {
 public:
  std::function<void(std::int64_t step)> ended = [](std::int64_t) {};
  void walk_begins(std::int64_t) override {}
  void walk_ends(std::int64_t step) override {
    done = step;
    ended(step);
  }
  std::int64_t done = 0;
};

/// Samples, of which those from `first_bad` on cannot be read. Calls a function before the first ones are read.
class Samples final : public executor::BatchSource {
 public:
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    if (begins) std::exchange(begins, {})();
    if (first_bad >= 0 && samples.front() >= first_bad) throw Error("token 99 is out of range");
    good_.microbatch(samples, tokens, targets);
  }
  std::int64_t first_bad = -1;
  std::function<void()> begins;

 private:
  test::TinySource good_;
};

/// Ranks 0 to 3: data 2 x tensor 2. Deadlines are too far away to end a wait.
class TrainHere : public ::testing::Test {
 protected:
  TrainHere() {
    run_.keys["parallel.data"] = "2";
    run_.keys["parallel.tensor"] = "2";
    run_.keys["train.stall_timeout_s"] = "1e6";
    run_.keys["train.precision"] = "\"fp64\"";
    run_.keys["checkpoint.resume"] = "\"never\""; // tests train in one folder again and again
  }

  std::optional<train::LoopResult> go() { return go(run_.config()); }
  std::optional<train::LoopResult> go(const config::RunConfig& config) {
    const train::Placement placement = train::choose_placement(config);
    const auto ranks = static_cast<std::size_t>(placement.ranks);
    logs_.clear();
    notes_.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto log = std::make_unique<Notes>();
      log->slow = slow_line_;
      notes_.push_back(log.get());
      logs_.push_back(std::move(log));
    }
    steps_.resize(ranks);
    store_ = std::make_unique<control::LocalStore>();
    std::vector<Samples> sources(2 * ranks);
    sources[ranks - 1].first_bad = first_bad_;
    sources[ranks].begins = evaluation_begins_;
    const os::StopSignals signals(*logs_[0]);
    return launch::run_threads({config, placement, logs_, signals, reports_,
                                [&](int rank) {
                                  const auto at = static_cast<std::size_t>(rank);
                                  train::RankOptions options;
                                  options.training = &sources[at];
                                  options.held_out = &sources[ranks + at];
                                  options.observer = &steps_[at];
                                  return options;
                                },
                                store_.get()});
  }
  std::vector<std::string> errors() const {
    std::vector<std::string> out;
    for (const Notes* of : notes_) out.insert(out.end(), of->errors.begin(), of->errors.end());
    return out;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> out;
    for (const Steps& of : steps_) out.push_back(of.done);
    return out;
  }
  /// For a separate process that may start three threads: for signals, the watchdog, and one rank (or a sanitizer).
  [[noreturn]] void go_with_three_threads() {
    const config::RunConfig config = run_.config();
    const rlimit four{4, 4};
    constexpr uid_t kOtherUser = 54321; // the limit counts a user's threads, and does not apply to root
    if (::setrlimit(RLIMIT_NPROC, &four) != 0 || ::setuid(kOtherUser) != 0) ::_exit(2);
    const bool failed = !go(config);
    for (const std::string& error : errors()) std::fputs(error.c_str(), stderr);
    ::_exit(failed ? 1 : 0);
  }
  void fails(int rank, const char* where) {
    run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
    run_.keys["optimizer.plugin"] = "\"optim-faulty\"";
    run_.keys["optimizer.rank"] = to_text(rank);
    run_.keys["optimizer.where"] = text("\"{}\"", where);
  }

  TinyRun run_;
  std::vector<std::unique_ptr<Log>> logs_;
  std::vector<Notes*> notes_;
  train::Reports reports_;
  std::vector<Steps> steps_{4};
  std::string slow_line_;                      // the first characters of a line that takes 3 s
  std::int64_t first_bad_ = -1;                // of the last rank's samples
  std::function<void()> evaluation_begins_;    // on rank 0
  std::unique_ptr<control::LocalStore> store_; // of the last run
};

TEST_F(TrainHere, EightRanksTrainAsOneDoes) {
  run_.keys["eval.every"] = "3";
  run_.keys["eval.batches"] = "2";
  run_.keys["data.validation"] = "\"text\"";
  const std::optional<train::LoopResult> four = go();
  EXPECT_THAT(errors(), IsEmpty());
  ASSERT_TRUE(four);
  EXPECT_THAT(steps(), ElementsAre(6, 6, 6, 6));
  EXPECT_EQ(four->steps, 6);

  run_.keys["parallel.pipeline"] = "2";
  const std::optional<train::LoopResult> eight = go();
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->first_loss, four->first_loss); // the pipeline size changes no bit
  EXPECT_EQ(eight->last_loss, four->last_loss);
  EXPECT_EQ(eight->eval_loss, four->eval_loss);

  for (const char* key : {"parallel.pipeline", "parallel.data", "parallel.tensor"}) run_.keys[key] = "1";
  const std::optional<train::LoopResult> one = go();
  ASSERT_TRUE(one);
  EXPECT_NEAR(four->first_loss, one->first_loss, 1e-12);
  EXPECT_NEAR(four->last_loss, one->last_loss, 1e-12);
  EXPECT_NEAR(four->eval_loss.value(), one->eval_loss.value(), 1e-12);
}

/// The others wait as long as it works, also if that takes longer than train.stall_timeout_s.
TEST_F(TrainHere, RankZeroMayTakeLongToCompleteTheLastCheckpoint) {
  run_.keys["train.stall_timeout_s"] = "1";
  slow_line_ = "step 6 is saved in ";
  const std::optional<train::LoopResult> result = go();
  EXPECT_THAT(errors(), IsEmpty());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->steps, 6);
  EXPECT_TRUE(std::filesystem::exists(run_.folder() / "run/checkpoints/step-00000006"));
}

TEST_F(TrainHere, ASignalStopsAllAfterTheSameStep) {
  std::atomic<bool> sent = false;
  steps_[3].ended = [&](std::int64_t step) {
    if (step == 2 && !sent.exchange(true)) ::kill(::getpid(), SIGTERM);
  };
  run_.keys["train.steps"] = "1000000";
  const std::optional<train::LoopResult> result = go();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_GE(result->steps, 2);
  EXPECT_THAT(steps(), Each(result->steps));
  EXPECT_THAT(errors(), IsEmpty());
}

/// There is a step to stop after, although its record waits for the evaluation.
TEST_F(TrainHere, ASignalInTheFirstEvaluationKeepsTheStepBefore) {
  run_.keys["eval.every"] = "1";
  run_.keys["eval.batches"] = "4";
  run_.keys["data.validation"] = "\"text\"";
  evaluation_begins_ = [] {
    ::kill(::getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(500)); // the thread that waits for the ranks sees the signal
  };
  const std::optional<train::LoopResult> result = go();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_EQ(result->steps, 1);
  EXPECT_TRUE(result->is_saved());
  EXPECT_TRUE(result->owes_evaluation);
}

/// The last rank fails at the start of step 2, when rank 0 may not know yet that all ranks have completed step 1.
TEST_F(TrainHere, AFailureDoesNotLoseTheRecordOfTheStepBefore) {
  first_bad_ = run_.config().batch.global;
  for (int trial = 0; trial < 20; ++trial) {
    std::int64_t recorded = 0;
    reports_.step = [&](const report::StepRecord& record) { recorded = record.step; };
    EXPECT_FALSE(go());
    EXPECT_THAT(errors(), ElementsAre(HasSubstr("step 2: token 99 is out of range")));
    EXPECT_EQ(recorded, 1) << "trial " << trial;
  }
}

TEST_F(TrainHere, NoRankGoesBeforeAllHaveTrained) {
  const std::filesystem::path gone = run_.folder() / "gone";
  fails(1000, "step"); // no rank
  run_.keys["optimizer.gone"] = text("\"{}\"", gone.string());
  bool early = false;
  reports_.step = [&](const report::StepRecord& record) { // on rank 0
    if (record.step < 6) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!early && store_->waiting() < 3 && std::chrono::steady_clock::now() < deadline) {
      early = std::filesystem::exists(gone);
      std::this_thread::yield();
    }
    EXPECT_EQ(store_->waiting(), 3) << "the others wait for this one";
  };
  EXPECT_TRUE(go());
  EXPECT_FALSE(early);
  EXPECT_TRUE(std::filesystem::exists(gone));
}

TEST_F(TrainHere, AFailureReachesTheOtherEndOfThePipeline) {
  for (const char* key : {"parallel.data", "parallel.tensor"}) run_.keys[key] = "1";
  run_.keys["parallel.pipeline"] = "2";
  for (const int rank : {0, 1}) {
    for (const char* where : {"create", "prepare", "step"}) {
      fails(rank, where);
      EXPECT_FALSE(go());
      EXPECT_THAT(errors(), ElementsAre(StartsWith(text("pipeline {}, data 0, tensor 0", rank)))) << where;
    }
  }
}

// While one rank fails, the others wait for it in the store (the first of a group), in join() or in a step.
class FailureOfOne : public TrainHere, public ::testing::WithParamInterface<std::tuple<int, const char*>> {};

TEST_P(FailureOfOne, EndsAllAndIsReportedOnce) {
  const auto [rank, where] = GetParam();
  fails(rank, where);
  EXPECT_FALSE(go());
  const std::string coordinates = text("pipeline 0, data {}, tensor {}", rank / 2, rank % 2);
  const std::string location = std::string_view(where) == "step" ? coordinates + ", step 2, 0OPT_STEP"
                               : std::string_view(where) == "create"
                                   ? coordinates + ", " TEST_PLUGINS "/optim-faulty.so: "
                                   : coordinates;
  EXPECT_THAT(errors(), ElementsAre(StartsWith(location)));
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("out of luck")));
  for (int other = 0; other < 4; ++other) {
    const Notes& notes = *notes_[static_cast<std::size_t>(other)];
    EXPECT_THAT(notes.errors, SizeIs(other == rank ? 1 : 0));
    if (other != rank) {
      EXPECT_THAT(notes.others, ElementsAre(StartsWith("stopped: pipeline 0, data ")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Where, FailureOfOne,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values("create", "prepare", "step")),
                         [](const auto& of) {
                           return text("{}_on_rank_{}", std::get<1>(of.param), std::get<0>(of.param));
                         });

TEST_F(TrainHere, AThreadThatCannotBeStartedEndsThoseThatWere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user without other threads";
  EXPECT_EXIT(go_with_three_threads(), ::testing::ExitedWithCode(1),
              "^cannot start the thread of rank [01]: Resource temporarily unavailable\n"
              "  use fewer ranks, or allow this process more threads \\(ulimit -u\\)$");
}

TEST_F(TrainHere, AnExceptionOfAnotherKindIsAFailureToo) {
  steps_[2].ended = [](std::int64_t step) {
    if (step == 3) throw 3; // NOLINT(hicpp-exception-baseclass)
  };
  EXPECT_FALSE(go());
  EXPECT_THAT(
      errors(),
      ElementsAre("pipeline 0, data 1, tensor 0, step 3: an unknown exception (not derived from std::exception)"));
}

/// Rank 1 works for longer than any wait may last, in operations that are short.
TEST_F(TrainHere, RanksWaitForARankThatMakesProgress) {
  run_.keys["train.stall_timeout_s"] = "1";
  run_.keys["train.steps"] = "3";
  steps_[1].ended = [](std::int64_t step) {
    for (int operation = 0; step == 2 && operation < 20; ++operation) {
      const ActivityScope call(ActivityScope::Kind::plugin_call, "gemm", "kernels-slow");
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  };
  EXPECT_TRUE(go());
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(TrainHere, RanksThatAllWaitAreReported) {
  run_.keys["comm.plugin"] = "\"comm-faulty\"";
  run_.keys["comm.inner"] = "\"comm-local\"";
  run_.keys["comm.fault"] = "\"drop\"";
  run_.keys["train.stall_timeout_s"] = "1";
  EXPECT_FALSE(go());
  const auto why = HasSubstr(": all ranks wait, but none makes progress; this one has waited for ");
  EXPECT_THAT(errors(),
              UnorderedElementsAre(
                  why, AllOf(why, HasSubstr(" is stuck before the end of its first step: before its first step, "))));
}

TEST_F(TrainHere, ARankThatIsAloneReportsNoCoordinates) {
  run_.keys["parallel.data"] = "1";
  run_.keys["parallel.tensor"] = "1";
  fails(0, "step");
  EXPECT_FALSE(go());
  EXPECT_THAT(errors(),
              ElementsAre("step 2, 0OPT_STEP, in step() of plugin \"optim-faulty\": out of luck\n  try again"));
}

} // namespace
} // namespace triax
