// SPDX-License-Identifier: Apache-2.0
// Texts of eval.sample: the same with divided weights and in each type, and what ends a run while a text is made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "report/metrics_reader.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using test::Where;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TextSamples : public test::ResumedRun {
 protected:
  TextSamples() {
    std::string text;
    while (text.size() < 400) text += "abc def gh\n";
    test::prepare_text(run_, text);
    has_corpora_ = true;
    run_.keys["model.sequence"] = "12";
    run_.keys["optimizer.lr"] = "3e-2";
    run_.keys["eval.every"] = "4";
    run_.keys["data.validation"] = "\"text\"";
    run_.keys["eval.sample"] = "\"ab\"";
    run_.keys["eval.sample_tokens"] = "8";
  }

  /// Something happens in the first text, in the call after the fourth one of one token.
  void add_event(const char* event) {
    run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
    run_.keys["kernels.plugin"] = "\"kernels-text-event\"";
    run_.keys["kernels.event"] = text("\"{}\"", event);
    run_.keys["model.sequence"] = "256";
    run_.keys["model.layers"] = "2";
    run_.keys["batch.global"] = "2";
    run_.keys["eval.sample_tokens"] = "250";
  }

  std::vector<report::StepRecord> records(const Where& where) {
    fs::remove_all(run_.folder() / "run");
    errors_ = train(where, 0);
    return report::read_metrics(run_.folder() / "run" / "metrics.jsonl").records;
  }
  std::vector<std::string> texts(const Where& where) {
    std::vector<std::string> out;
    for (const report::StepRecord& record : records(where))
      if (record.sample) out.push_back(*record.sample);
    EXPECT_THAT(errors_, IsEmpty());
    EXPECT_THAT(out, SizeIs(2));
    EXPECT_THAT(out, Each(Not(IsEmpty())));
    return out;
  }

  static Where divided(Where where, const char* prefetch) {
    where.keys["optimizer.shard"] = "\"parameters\"";
    where.keys["optimizer.prefetch"] = prefetch;
    return where;
  }

  std::vector<std::string> errors_; // of ranks, in the last run
};

/// Each call gathers the weights of a stage, into the slots of the training.
TEST_F(TextSamples, AreTheSameWithDividedParameters) {
  run_.keys["train.steps"] = "4";
  run_.keys["eval.every"] = "2";
  run_.keys["eval.sample_tokens"] = "10"; // few tokens are the same with some wrong weights
  const std::map<std::string, std::string> breadth_first = {{"parallel.chunks", "4"},
                                                            {"schedule.plugin", "\"sched-breadth-first\""}},
                                           interleaved = {{"parallel.chunks", "2"},
                                                          {"schedule.plugin", "\"sched-interleaved\""}};
  const std::vector<std::string> whole = texts({1, 1, 2, breadth_first});
  for (const char* prefetch : {"0", "1", "7"})
    EXPECT_EQ(texts(divided({1, 1, 2, breadth_first}, prefetch)), whole) << "prefetch " << prefetch;
  for (const Where& where : std::vector<Where>{{2, 1, 2, interleaved}, {1, 2, 2, {}}})
    EXPECT_EQ(texts(divided(where, "1")), texts(where)) << where.pipeline << " pipeline ranks";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  for (const char* precision : {"\"bf16\"", "\"fp16\""}) {
    run_.keys["train.precision"] = precision;
    const Where where{1, 1, 2, breadth_first};
    EXPECT_EQ(texts(divided(where, "1")), texts(where)) << precision;
  }
}

/// The text is left out, and the step is saved.
TEST_F(TextSamples, AreLeftOutAfterASignal) {
  add_event("stop");
  const std::vector<report::StepRecord> records = this->records({2, 1, 1}); // the first stage sends it
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(result_.signal, SIGTERM);
  ASSERT_THAT(records, SizeIs(4));
  EXPECT_TRUE(records.back().eval_loss);
  EXPECT_FALSE(records.back().sample);
  EXPECT_EQ(state("run", 4).step, 4);
}

/// Two hours pass while a token is generated.
TEST_F(TextSamples, AreLeftOutAtTheTimeLimit) {
  add_event("user");
  run_.keys["train.time_limit"] = "\"1h\"";
  static train::Reports** reports = nullptr; // a signal handler has no arguments
  reports = &reports_;
  struct sigaction earlier = {}, pass = {};
  pass.sa_handler = [](int) { (*reports)->began -= std::chrono::hours(2); }; // on the thread of rank 0
  ASSERT_EQ(::sigaction(SIGUSR2, &pass, &earlier), 0);
  const std::vector<report::StepRecord> records = this->records({2, 1, 1});
  ASSERT_EQ(::sigaction(SIGUSR2, &earlier, nullptr), 0);
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_TRUE(result_.out_of_time);
  ASSERT_THAT(records, SizeIs(4));
  EXPECT_TRUE(records.back().eval_loss);
  for (const report::StepRecord& record : records) EXPECT_FALSE(record.sample);
  EXPECT_EQ(state("run", 4).step, 4);
}

/// As a held-out loss that is not finite, whatever train.nonfinite says.
TEST_F(TextSamples, EndTheRunIfALogitIsNotFinite) {
  add_event("nan");
  run_.keys["checkpoint.every"] = "2";
  for (const char* rule : {"\"stop\"", "\"rewind\""})
    for (const Where& where : std::vector<Where>{{1, 1, 1}, {2, 1, 2}, {2, 1, 2, {{"kernels.rank", "1"}}}}) {
      run_.keys["train.nonfinite"] = rule;
      const std::vector<report::StepRecord> records = this->records(where);
      EXPECT_THAT(errors_, SizeIs(where.pipeline * where.data));
      EXPECT_THAT(errors_, Each(StartsWith("step 4, text of eval.sample, after 7 tokens: the logit of token 0 is not a "
                                           "number\n  the weights are not finite, or too large: use those of another "
                                           "checkpoint")));
      EXPECT_THAT(errors_, Contains(EndsWith("; step 4 is saved")));
      ASSERT_THAT(records, SizeIs(4));
      EXPECT_TRUE(records.back().eval_loss);
      EXPECT_EQ(state("run", 4).step, 4);
    }
  EXPECT_THAT(train({1, 1, 1}, 0), ElementsAre(StartsWith("step 8, text of eval.sample, "))); // continues without it
}

/// The held-out loss of an evaluation that a stop had left out is complete before its text.
TEST_F(TextSamples, OfAnEvaluationThatAStopLeftOutKeepTheLossIfALogitIsNotFinite) {
  add_event("nan");
  ASSERT_THAT(train({1, 1, 1, {{"eval.every", "0"}, {"eval.sample", "\"\""}}}, 4), IsEmpty());
  EXPECT_THAT(train({1, 1, 1}, 0), ElementsAre(StartsWith("step 4, text of eval.sample, after 7 tokens: ")));
  const std::vector<report::StepRecord> records = report::read_metrics(run_.folder() / "run" / "metrics.jsonl").records;
  ASSERT_THAT(records, SizeIs(4));
  EXPECT_TRUE(records.back().eval_loss);
}

} // namespace
} // namespace triax
