// SPDX-License-Identifier: Apache-2.0
// The training loop: recorded and evaluated steps, files that cannot be written, and signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "control/job_local_store.hpp"
#include "train/checkpoints.hpp"
#include "train/loop.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using Json = nlohmann::json;
using test::TinyRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Calls a function before each microbatch.
class Prompted final : public executor::BatchSource {
 public:
  std::function<void(std::int64_t sample)> prompt = [](std::int64_t) {};
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    prompt(samples[0]);
    source_.microbatch(samples, tokens, targets);
  }

 private:
  test::TinySource source_;
};

class LoopTest : public ::testing::Test {
 protected:
  train::LoopResult go() {
    config_ = run_.config();
    const os::StopSignals signals(null_log());
    test::TinyRank rank(config_, {.training = &source_});
    return loop(*rank, signals);
  }
  train::LoopResult loop(train::Rank& rank, const os::StopSignals& signals) {
    const train::RunFolder folder(config_, "# resolved\n");
    train::RunRecords records(config_, "# resolved\n", log_);
    return train::run_loop(config_, rank, signals, {&records, {}, [this](const std::string& line) { note_ = line; }});
  }
  std::vector<Json> records() const {
    std::vector<Json> out;
    std::istringstream lines(test::read_file(config_.log.metrics));
    for (std::string line; std::getline(lines, line);) out.push_back(Json::parse(line));
    return out;
  }
  class Errors final : public Log {
   public:
    bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::warn; }
    void write(LogLevel, std::string_view line) noexcept override { lines.emplace_back(line); }
    std::vector<std::string> lines;
  };

  TinyRun run_;
  config::RunConfig config_;
  Prompted source_;
  Errors log_;
  std::string note_;
};

TEST_F(LoopTest, RecordsTheNumbersOfEveryStep) {
  run_.keys["lr.warmup_steps"] = "3";
  const train::LoopResult result = go();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.signal, 0);
  const std::vector<Json> all = records();
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all.front()["loss"].get<double>(), result.first_loss); // same bits
  EXPECT_EQ(all.back()["loss"].get<double>(), result.last_loss);
  EXPECT_GT(result.tokens_per_s, 0);
  const test::Trace again = test::train(run_, 6);
  for (int i = 0; i < 6; ++i) {
    const Json& record = all[static_cast<std::size_t>(i)];
    EXPECT_EQ(record["step"], i + 1);
    EXPECT_EQ(record["loss"].get<double>(), again.losses[static_cast<std::size_t>(i)]);
    EXPECT_EQ(record["grad_norm"].get<double>(), again.norms[static_cast<std::size_t>(i)]);
    EXPECT_DOUBLE_EQ(record["lr"].get<double>(), 1e-2 * std::min(1.0, (i + 1) / 3.0));
    EXPECT_NEAR(record["tokens_per_s"].get<double>() * record["step_ms"].get<double>(), 24e3, 1e-6);
    EXPECT_EQ(record["bubble_rate"], 0);
    EXPECT_FALSE(record.contains("eval_loss"));
    EXPECT_FALSE(record.contains("loss_scale") || record.contains("skipped"));
  }
  EXPECT_EQ(test::read_file(config_.folder / "resolved.toml"), "# resolved\n");
}

TEST_F(LoopTest, RecordsLossScaleAndSkippedStepsInFp16) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run_.keys["train.precision"] = "\"fp16\"";
  run_.keys["loss_scale.initial"] = "16777216"; // 2^22 / 24 tokens is still above 65504; hysteresis is 2
  run_.keys["train.steps"] = "14";
  const train::LoopResult result = go();
  const std::vector<Json> all = records();
  ASSERT_EQ(all.size(), 14u);
  const double scales[] = {0x1p24, 0x1p24, 0x1p23, 0x1p22, 0x1p21};
  for (std::size_t i = 0; i < std::size(scales); ++i) EXPECT_EQ(all[i]["loss_scale"].get<double>(), scales[i]) << i;
  std::int64_t skipped = 0;
  for (const Json& record : all) {
    skipped += record["skipped"].get<bool>() ? 1 : 0;
    EXPECT_EQ(record["grad_norm"].is_null(), record["skipped"].get<bool>()) << record;
    EXPECT_TRUE(std::isfinite(record["loss"].get<double>()));
  }
  EXPECT_FALSE(all.back()["skipped"].get<bool>());
  EXPECT_EQ(result.skipped, skipped);
}

TEST_F(LoopTest, EvaluatesAtItsStepsAndAtTheLast) {
  run_.keys["train.steps"] = "5";
  run_.keys["eval.every"] = "2";
  run_.keys["eval.batches"] = "1";
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["log.every"] = "3";
  const train::LoopResult result = go();
  std::vector<int> steps, evaluated;
  for (const Json& record : records()) {
    steps.push_back(record["step"]);
    if (!record.contains("eval_loss")) continue;
    evaluated.push_back(record["step"]);
    EXPECT_DOUBLE_EQ(record["eval_perplexity"].get<double>(), std::exp(record["eval_loss"].get<double>()));
  }
  EXPECT_THAT(steps, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(evaluated, ElementsAre(2, 4, 5));
  EXPECT_EQ(result.eval_loss, records().back()["eval_loss"].get<double>());
}

TEST_F(LoopTest, AFreshRunMovesTheMetricsOfAnEarlierOneAside) {
  go();
  EXPECT_EQ(note_, "");
  const std::string earlier = test::read_file(config_.log.metrics);
  run_.keys["train.steps"] = "2";
  go();
  EXPECT_EQ(records().size(), 2u);
  EXPECT_EQ(test::read_file(config_.folder / "metrics-1.jsonl"), earlier);
  EXPECT_THAT(note_, HasSubstr("metrics.jsonl to metrics-1.jsonl, resolved.toml to resolved-1.toml"));
}

TEST_F(LoopTest, ARunThatStopsBeforeItsFirstStepChangesNoEarlierFile) {
  go();
  const std::string earlier = test::read_file(config_.log.metrics);
  os::StopSignals signals(null_log());
  signals.ask(SIGTERM);
  test::TinyRank rank(config_, {.training = &source_});
  EXPECT_EQ(loop(*rank, signals).steps, 0);
  EXPECT_EQ(test::read_file(config_.log.metrics), earlier);
  EXPECT_FALSE(std::filesystem::exists(config_.folder / "metrics-1.jsonl"));
}

TEST_F(LoopTest, ADeletedFolderIsReportedAtTheStepAndTheTrainingContinues) {
  run_.keys["log.every"] = "100";
  std::size_t lines_before_the_end = 0;
  source_.prompt = [&](std::int64_t sample) {
    if (sample == 8) std::filesystem::remove_all(config_.folder); // first sample of the third step
    if (sample == 12) lines_before_the_end = log_.lines.size();   // and of the fourth
  };
  const train::LoopResult result = go();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(lines_before_the_end, 1u);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_THAT(log_.lines[0], HasSubstr("metrics.jsonl: was deleted during the run"));
  EXPECT_EQ(result.records, 1);
  EXPECT_EQ(result.missing.records, 1);
}

TEST_F(LoopTest, RecordsThatAreNotWrittenDoNotEndTheTraining) {
  run_.keys["log.metrics"] = "\"/dev/full\"";
  const train::LoopResult result = go();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.records, 6);
  EXPECT_EQ(result.missing.records, 6);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_THAT(log_.lines[0], HasSubstr("the record of step 1 cannot be written: No space left on device"));
}

TEST_F(LoopTest, ATimelineThatIsNotWrittenDoesNotEndTheTraining) {
  run_.keys["log.timeline"] = "2";
  source_.prompt = [&](std::int64_t sample) {
    if (sample == 4) std::filesystem::create_directories(config_.folder / "timeline-rank-0.json.tmp");
  };
  const train::LoopResult result = go();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.missing.timelines, 1);
  EXPECT_EQ(result.missing.records, 0);
}

TEST_F(LoopTest, ASignalStopsAfterTheStepThatTellsAllRanks) {
  class Seen final : public Log {
   public:
    bool enabled(LogLevel) const noexcept override { return true; }
    void write(LogLevel, std::string_view line) noexcept override { text = line; }
    std::string text;
  } log;
  config_ = run_.config();
  {
    const os::StopSignals signals(log);
    source_.prompt = [&](std::int64_t sample) {
      if (sample != 8) return; // first sample of the third step, read at the end of the second
      ::kill(::getpid(), SIGTERM);
      while (signals.caught() == 0) ::usleep(1000);
    };
    test::TinyRank rank(config_, {.training = &source_});
    const train::LoopResult result = loop(*rank, signals);
    EXPECT_EQ(result.signal, SIGTERM);
    EXPECT_EQ(result.steps, 3);
  }
  EXPECT_EQ(records().size(), 3u);
  EXPECT_EQ(log.text, "SIGTERM: stopping at the end of a step; a second signal ends the process immediately");
}

/// As where stderr is a pipe that is full.
TEST_F(LoopTest, ASecondSignalEndsTheProcessThoughTheLogBlocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  class Blocking final : public Log {
   public:
    bool enabled(LogLevel) const noexcept override { return true; }
    void write(LogLevel, std::string_view) noexcept override {
      for (;;) ::pause();
    }
  };
  const auto two_signals = [] {
    Blocking log;
    const os::StopSignals signals(log);
    ::kill(::getpid(), SIGTERM);
    while (signals.caught() == 0) ::usleep(1000);
    ::kill(::getpid(), SIGTERM);
    ::sleep(60);
  };
  EXPECT_EXIT(two_signals(), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(LoopTest, ASignalStopsBetweenBatchesOfAnEvaluation) {
  run_.keys["eval.every"] = "2";
  run_.keys["eval.batches"] = "100";
  run_.keys["data.validation"] = "\"text\"";
  config_ = run_.config();
  const os::StopSignals signals(null_log());
  Prompted held_out;
  std::int64_t latest = 0;
  held_out.prompt = [&](std::int64_t sample) {
    latest = std::max(latest, sample);
    if (sample != 12) return; // first sample of the fourth batch
    ::kill(::getpid(), SIGINT);
    while (signals.caught() == 0) ::usleep(1000);
  };
  test::TinyRank rank(config_, {.training = &source_, .held_out = &held_out});
  const train::LoopResult result = loop(*rank, signals);
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(latest, 15); // no batch after that one
  EXPECT_FALSE(result.eval_loss);
  ASSERT_EQ(records().size(), 2u);
  EXPECT_FALSE(records().back().contains("eval_loss"));
}

TEST_F(LoopTest, ASignalBeforeAnEvaluationLeavesItOut) {
  run_.keys["eval.every"] = "3";
  run_.keys["eval.batches"] = "1";
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["log.every"] = "100";
  config_ = run_.config();
  const os::StopSignals signals(null_log());
  source_.prompt = [&](std::int64_t sample) {
    if (sample != 8) return; // first sample of the third step, read at the end of the second
    ::kill(::getpid(), SIGTERM);
    while (signals.caught() == 0) ::usleep(1000);
  };
  test::TinyRank rank(config_, {.training = &source_});
  EXPECT_EQ(loop(*rank, signals).signal, SIGTERM);
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records().back()["step"], 3);
  EXPECT_FALSE(records().back().contains("eval_loss"));
}

/// Runs in a separate process that cannot start threads.
[[noreturn]] void start_without_threads() {
  const rlimit none{0, 0};
  const bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0 && (::geteuid() != 0 || ::setuid(65534) == 0);
  try {
    const os::StopSignals signals(null_log());
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    ::_exit(limited ? 3 : 1);
  }
  ::_exit(1);
}

TEST(StopSignals, AThreadThatCannotBeStartedIsReported) {
  EXPECT_EXIT(start_without_threads(), ::testing::ExitedWithCode(3),
              "cannot start the signal thread: Resource temporarily unavailable\n"
              "  allow this process more threads");
}

/// In a separate process. The thread that writes checkpoints is the first one that is refused.
[[noreturn]] void save_without_threads(const config::RunConfig& config) {
  test::TinyRank rank(config);
  const Layout layout = Layout::ptd(1, 1, 1);
  control::LocalStore store;
  const rlimit none{0, 0};
  const bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0 && (::geteuid() != 0 || ::setuid(65534) == 0);
  try {
    train::Checkpoints checkpoints(config, layout, 0, *rank, store, null_log());
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    ::_exit(limited ? 3 : 1);
  }
  ::_exit(1);
}

TEST_F(LoopTest, AThreadForCheckpointsThatCannotBeStartedIsReported) {
  EXPECT_EXIT(save_without_threads(run_.config()), ::testing::ExitedWithCode(3),
              "cannot start the thread that writes checkpoints: Resource temporarily unavailable\n"
              "  allow this process more threads \\(ulimit -u\\)");
}

/// Another run may have its name by then.
TEST_F(LoopTest, TheTimelineOfAFolderThatIsMovedIsInIt) {
  run_.keys["log.timeline"] = "4";
  std::filesystem::create_directory(run_.folder() / "run"); // before the rank, as in a run
  source_.prompt = [&](std::int64_t sample) {
    if (sample != 8) return;
    std::filesystem::rename(run_.folder() / "run", run_.folder() / "moved");
    std::filesystem::create_directory(run_.folder() / "run");
  };
  EXPECT_EQ(go().missing.timelines, 0);
  EXPECT_TRUE(std::filesystem::exists(run_.folder() / "moved/timeline-rank-0.json"));
  EXPECT_TRUE(std::filesystem::is_empty(run_.folder() / "run"));
}

TEST_F(LoopTest, NamesTheStepInAnError) {
  source_.prompt = [&](std::int64_t sample) {
    if (sample == 8) throw Error("the file is gone", "text.bin", "bring it back");
  };
  try {
    go();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "step 3, text.bin: the file is gone\n  bring it back");
  }
  EXPECT_EQ(records().size(), 2u);
}

TEST_F(LoopTest, ARankWithoutAnObserverTrainsAlike) {
  const train::LoopResult result = go();
  const os::StopSignals signals(null_log());
  test::TinyRank rank(config_, {.training = &source_});
  EXPECT_EQ(train::run_loop(config_, *rank, signals, {}).last_loss, result.last_loss);
}

} // namespace
} // namespace triax
