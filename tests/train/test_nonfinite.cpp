// SPDX-License-Identifier: Apache-2.0
// Losses and gradients that are not finite: what train.nonfinite does, and that the first layer, parameter and rank are
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/error_of.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::error_of;
using test::TinyRank;
using test::TinySource;
using test::Where;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void poison(train::Rank& rank, const std::string& parameter) {
  for (const train::RankParameter& of : rank.parameters())
    if (of.name == parameter) of.master.as<float>()[3] = kNan;
}

/// Makes a weight NaN while the batch of sample `bad` is read: then the step that uses it begins. `after`: how often
/// the sample is read before; evaluations read the samples of the first step.
class PoisoningSource final : public executor::BatchSource {
 public:
  explicit PoisoningSource(std::int64_t bad, int after = 0) : bad_(bad), after_(after) {}
  void set(train::Rank& rank) { rank_ = &rank; }
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    inner_.microbatch(samples, tokens, targets);
    for (const std::int64_t sample : samples)
      if (sample == bad_ && after_-- <= 0) poison(*rank_, "block 1/mlp.up.weight");
  }

 private:
  const std::int64_t bad_;
  int after_;
  TinySource inner_;
  train::Rank* rank_ = nullptr;
};

/// The samples [begin, end) are left out.
class SourceWithout final : public executor::BatchSource {
 public:
  SourceWithout(std::int64_t begin, std::int64_t end) : begin_(begin), end_(end) {}
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    std::vector<std::int64_t> others(samples.begin(), samples.end());
    for (std::int64_t& sample : others)
      if (sample >= begin_) sample += end_ - begin_;
    inner_.microbatch(others, tokens, targets);
  }

 private:
  const std::int64_t begin_, end_;
  TinySource inner_;
};

class Nonfinite : public test::ResumedRun {
 protected:
  Nonfinite() {
    run_.keys["model.dropout"] = "0"; // depends on sample numbers
    run_.keys["checkpoint.every"] = "3";
    run_.keys["checkpoint.keep"] = "9";
    run_.keys["eval.batches"] = "1";
  }

  /// Trains the run with data from `source`. Returns the errors of ranks.
  template <class Source>
  std::vector<std::string> train(const Source& source, const Where& where = {}, int stop_at = 0) {
    const config::RunConfig config = this->config(where, stop_at);
    const train::RunFolder reserved(config, "# resolved\n");
    return start(config, source, [&](train::Rank& rank, train::Checkpoints& checkpoints, int index, Source& own) {
      if constexpr (std::is_same_v<Source, PoisoningSource>) own.set(rank);
      train::RunRecords records(config, "# resolved\n", null_log());
      train::Reports reports;
      if (index == 0)
        reports = {.records = &records,
                   .note = [this](const std::string& line) { notes_.push_back(line); },
                   .continuing = [this](std::int64_t step) { continued_after_.push_back(step); }};
      return train::run_loop(config, rank, signals_, reports, &checkpoints);
    });
  }

  /// By step: loss and norm with all bits, and the text.
  std::map<std::int64_t, std::string> records(const std::string& file = "metrics.jsonl") const {
    std::map<std::int64_t, std::string> out;
    std::istringstream lines(test::read_file(run_.folder() / "run" / file));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      out[record["step"]] = record["loss"].dump() + " " + record["grad_norm"].dump() + record.value("sample", "");
    }
    return out;
  }
  std::int64_t samples_at(std::int64_t step) const { return state("run", step).samples; }

  std::vector<std::string> notes_;
  std::vector<std::int64_t> continued_after_;
};

/// Each rank reports the same, and no weight has changed.
TEST_F(Nonfinite, TheFirstLayerParameterAndRankAreNamedOnAllRanks) {
  const config::RunConfig config = this->config({2, 2, 1}, 0);
  std::mutex mutex;
  std::vector<std::string> errors;
  test::run_ranks(config, train::layout_of(config), [&](train::Rank& rank, int index) {
    rank.step();
    if (index == 3) poison(rank, "block 2/mlp.up.weight"); // the second stage has blocks 2 and 3
    const std::string error = error_of([&] { rank.step(); });
    EXPECT_EQ(rank.position(), "step 2, NORM");
    const std::lock_guard lock(mutex);
    errors.push_back(error);
  });
  ASSERT_EQ(errors.size(), 4u);
  for (const std::string& error : errors) EXPECT_EQ(error, errors.front());
  EXPECT_THAT(
      errors.front(),
      MatchesRegex("step 2, NORM: the loss of sample 8 \\(microbatch 0 of data rank 0\\) is not a number; first "
                   "on rank 3: the output of block 2 in microbatch 0 \\(48 of 48 values\\); block 2/mlp.up.weight "
                   "has 1 such value\n.*"));
  EXPECT_THAT(errors.front(), HasSubstr("use a smaller optimizer.lr"));
}

/// A smaller learning rate cannot help.
TEST_F(Nonfinite, AWeightThatNoStepHasChangedIsThatOfTheCheckpoint) {
  TinyRank rank(run_);
  poison(*rank, "block 1/mlp.up.weight");
  rank->weights_changed();
  EXPECT_THAT(error_of([&] { rank->step(); }),
              HasSubstr("such value\n  the weight is as the checkpoint has it: use another checkpoint"));
}

TEST_F(Nonfinite, AHeldOutLossIsTracedToItsLayerToo) {
  const config::RunConfig config = this->config({2, 2, 1}, 0);
  std::mutex mutex;
  std::vector<std::string> errors;
  test::run_ranks(config, train::layout_of(config), [&](train::Rank& rank, int index) {
    rank.step();
    if (index == 3) poison(rank, "block 2/mlp.up.weight");
    const std::string error = error_of([&] { rank.evaluate(); });
    const std::lock_guard lock(mutex);
    errors.push_back(error);
  });
  ASSERT_EQ(errors.size(), 4u);
  for (const std::string& error : errors) EXPECT_EQ(error, errors.front());
  EXPECT_THAT(errors.front(),
              MatchesRegex("evaluation on held-out samples: the loss of sample 0 .*is not a number; first on rank 3: "
                           "the output of block 2 in microbatch 0 \\(48 of 48 values\\); block 2/mlp.up.weight has 1 "
                           "such value"));
}

/// A weight that overflows in the type of the layers, not in the master weights.
TEST_F(Nonfinite, AWeightThatOverflowsInBf16IsNamed) {
  run_.keys["train.precision"] = "\"bf16\"";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  TinyRank rank(run_);
  rank->parameter("block 1/mlp.up.weight").master.as<float>()[3] = std::numeric_limits<float>::max();
  rank->weights_changed();
  EXPECT_THAT(error_of([&] { rank->step(); }), HasSubstr("first on rank 0: the output of block 1 in microbatch 0 ("));
  EXPECT_THAT(error_of([&] { rank->step(); }), HasSubstr("; block 1/mlp.up.weight has 1 such value\n"));
}

TEST_F(Nonfinite, ASkippedStepChangesNoWeightAndTheNextOneTrains) {
  run_.keys["train.nonfinite"] = "\"skip\"";
  TinyRank rank(run_);
  rank->step();
  float& weight = rank->parameter("block 1/mlp.up.weight").master.as<float>()[3];
  const float before = std::exchange(weight, kNan);
  const auto bytes = [&rank] {
    std::vector<std::byte> out;
    for (const train::RankParameter& of : rank->parameters()) test::append(out, of.master);
    return out;
  };
  const std::vector<std::byte> weights = bytes();
  const train::StepResult skipped = rank->step();
  EXPECT_TRUE(skipped.skipped);
  ASSERT_TRUE(skipped.nonfinite);
  EXPECT_THAT(skipped.nonfinite->message(), HasSubstr("block 1/mlp.up.weight has 1 such value"));
  EXPECT_EQ(bytes(), weights);
  EXPECT_EQ(rank->training_state().optimizer_steps, 1);
  weight = before;
  const train::StepResult next = rank->step();
  EXPECT_FALSE(next.skipped);
  EXPECT_FALSE(next.nonfinite);
  EXPECT_NE(bytes(), weights);
  EXPECT_EQ(rank->training_state().samples, 24);
}

TEST_F(Nonfinite, ARunThatSkipsEveryStepEnds) {
  run_.keys["train.nonfinite"] = "\"skip\"";
  run_.keys["train.steps"] = "40";
  EXPECT_THAT(
      train(PoisoningSource(8)),
      ElementsAre(HasSubstr("step 21, NORM: the loss of sample 160 (microbatch 0 of data rank 0) is not a number, "
                            "in 20 steps one after another\n")));
  EXPECT_EQ(notes_.size(), 19u);
  EXPECT_EQ(records().at(2), "null null");
}

/// On all ranks: the state before the step that has failed, although no checkpoint is due. Older ones stay.
TEST_F(Nonfinite, ARunThatEndsSavesItsLastStep) {
  run_.keys["checkpoint.keep"] = "1";
  for (const Where& where : std::vector<Where>{{}, {2, 2, 2}}) {
    run_.keys["checkpoint.resume"] = "\"never\"";
    EXPECT_THAT(train(PoisoningSource(35), where),
                ::testing::Contains(MatchesRegex("step 5, NORM: the loss of sample .*; step 4 is saved")));
    EXPECT_EQ(samples_at(3), 24);
    EXPECT_EQ(samples_at(4), 32);
    EXPECT_EQ(state("run", 4).optimizer_steps, 4);
    run_.keys["checkpoint.resume"] = "\"auto\"";
    EXPECT_THAT(train(PoisoningSource(35), where), ::testing::Contains(HasSubstr("step 5, NORM: the loss of sample ")));
    EXPECT_EQ(samples_at(4), 32);
  }
}

/// Whatever train.nonfinite says: the weights of the step are those that the samples of training have made.
TEST_F(Nonfinite, ARunWhoseHeldOutLossIsNotFiniteSavesItsLastStep) {
  run_.keys["eval.every"] = "2";
  run_.keys["data.validation"] = "\"text\"";
  for (const char* rule : {"\"stop\"", "\"rewind\""})
    for (const Where& where : std::vector<Where>{{}, {2, 2, 2}}) {
      run_.keys["train.nonfinite"] = rule;
      run_.keys["checkpoint.resume"] = "\"never\"";
      EXPECT_THAT(
          train(PoisoningSource(0, 1), where),
          ::testing::Contains(MatchesRegex("step 2, evaluation on held-out samples: the loss of sample .*; first on "
                                           "rank .*\n  step 2 is saved")));
      EXPECT_EQ(samples_at(2), 16);
      EXPECT_EQ(records().size(), 2u);
    }
}

TEST_F(Nonfinite, ARunThatSkipsTooManyStepsSavesTheLastOne) {
  run_.keys["train.nonfinite"] = "\"skip\"";
  run_.keys["train.steps"] = "40";
  run_.keys["checkpoint.every"] = "0";
  EXPECT_THAT(train(PoisoningSource(8)), ElementsAre(HasSubstr("step 21, NORM: ")));
  EXPECT_EQ(samples_at(20), 160);
  EXPECT_EQ(state("run", 20).optimizer_steps, 1);
}

/// The losses are those of a run without these samples.
TEST_F(Nonfinite, ARewindLeavesTheSamplesOut) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  ASSERT_THAT(train(PoisoningSource(35), {2, 2, 2}), IsEmpty()); // step 5; the last checkpoint is of step 3
  ASSERT_EQ(notes_.size(), 2u);
  EXPECT_THAT(notes_[0], HasSubstr("step 5, NORM: the loss of sample 33 "));
  EXPECT_THAT(notes_[0], HasSubstr("; first on rank "));
  EXPECT_THAT(notes_[0], MatchesRegex(".*; goes back to step 3 \\(.*/step-00000003\\) and leaves out the samples 24 to "
                                      "39 \\(rewind 1 of 3\\)"));
  EXPECT_THAT(notes_[1], EndsWith("metrics.jsonl: records after step 3 are only in metrics-1.jsonl"));
  EXPECT_THAT(continued_after_, ElementsAre(3));
  EXPECT_EQ(result_.last_step, 8);
  EXPECT_EQ(result_.skipped, 1);
  EXPECT_EQ(samples_at(8), 80);
  EXPECT_EQ(records("metrics-1.jsonl").size(), 4u);
  const auto rewound = records();
  EXPECT_EQ(samples_at(3), 40) << "saved again: a later start must not use the samples";
  run_.keys["checkpoint.resume"] = "\"never\"";
  ASSERT_THAT(train(SourceWithout(24, 40), {2, 2, 2}), IsEmpty());
  EXPECT_EQ(rewound, records());
}

TEST_F(Nonfinite, TextsAfterARewindAreThoseOfARunWithoutTheSamples) {
  test::prepare_text(run_, "a corpus that has a tokenizer: the ranks read other tokens");
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["eval.every"] = "3";
  run_.keys["eval.sample"] = "\"ab\"";
  run_.keys["train.nonfinite"] = "\"rewind\"";
  ASSERT_THAT(train(PoisoningSource(35), {2, 1, 2}), IsEmpty());
  EXPECT_THAT(notes_, Contains(HasSubstr("; goes back to step 3 ")));
  EXPECT_THAT(notes_, Contains(HasSubstr("sample after step 6: ab")));
  const auto rewound = records();
  run_.keys["checkpoint.resume"] = "\"never\"";
  ASSERT_THAT(train(SourceWithout(24, 40), {2, 1, 2}), IsEmpty());
  EXPECT_EQ(rewound, records());
}

/// A later start, after a stop before the next save, continues without them too.
TEST_F(Nonfinite, ARunThatStopsAfterItHasGoneBackContinuesWithoutTheSamples) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-counting\""; // its state goes back too
  run_.keys["checkpoint.every"] = "2";
  ASSERT_THAT(train(PoisoningSource(27), {}, 4), IsEmpty()); // step 4; the last checkpoint is of step 2
  EXPECT_EQ(samples_at(2), 32);
  ASSERT_THAT(train(TinySource()), IsEmpty());
  EXPECT_THAT(continued_after_, ElementsAre(2, 4));
  EXPECT_EQ(samples_at(8), 80);
  const auto rewound = records();
  run_.keys["checkpoint.resume"] = "\"never\"";
  ASSERT_THAT(train(SourceWithout(16, 32)), IsEmpty());
  EXPECT_EQ(rewound, records());
}

/// The state that a plugin has after the step that is left out is replaced.
TEST_F(Nonfinite, ARewindAsksNoPluginForItsState) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-counting\"";
  run_.keys["optimizer.cannot_save"] = "3"; // steps: between two checkpoints
  run_.keys["checkpoint.every"] = "2";
  ASSERT_THAT(train(PoisoningSource(27)), IsEmpty()); // step 4
  EXPECT_THAT(notes_, Contains(HasSubstr("; goes back to step 2 ")));
  EXPECT_EQ(result_.last_step, 8);
}

TEST_F(Nonfinite, ARunThatRewindsTooOftenEnds) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["train.max_rewinds"] = "1";
  ASSERT_THAT(train(PoisoningSource(35)), IsEmpty());
  run_.keys["checkpoint.resume"] = "\"never\"";
  run_.keys["train.max_rewinds"] = "2";
  run_.keys["optimizer.lr"] = "1e30"; // each step after the checkpoint overflows
  run_.keys["lr.warmup_steps"] = "0";
  run_.keys["checkpoint.every"] = "1";
  EXPECT_THAT(train(TinySource()), ElementsAre(HasSubstr("; the run has gone back 2 times (train.max_rewinds)\n")));
}

/// A later start must not use the samples again that the last return has left out.
TEST_F(Nonfinite, ARunThatRewindsTooOftenHasSavedItsLastRewind) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["train.max_rewinds"] = "1";
  run_.keys["model.hidden"] = "64"; // takes a while to write
  run_.keys["optimizer.lr"] = "1e30";
  run_.keys["lr.warmup_steps"] = "0";
  run_.keys["checkpoint.every"] = "1";
  EXPECT_THAT(train(TinySource(), {2, 2, 1}), Contains(HasSubstr("; the run has gone back 1 times")));
  EXPECT_EQ(samples_at(1), 16) << "of the first step, and of the one that was left out";
}

TEST_F(Nonfinite, WithoutACheckpointItCannotGoBack) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  EXPECT_THAT(train(PoisoningSource(8)), ElementsAre(MatchesRegex("step 2, NORM: .*; there is no checkpoint to go back "
                                                                  "to\n  save more often: checkpoint.every = 3 is "
                                                                  "after this step")));
  run_.keys["checkpoint.every"] = "0";
  EXPECT_THAT(run_.load().refusals.at(0).text,
              HasSubstr("train.nonfinite = \"rewind\" goes back to a checkpoint, but checkpoint.every = 0"));
}

} // namespace
} // namespace triax
