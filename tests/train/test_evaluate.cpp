// SPDX-License-Identifier: Apache-2.0
// The weights of a checkpoint have the loss that training had with them, on every layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "report/metrics_reader.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using test::Where;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Evaluated : public test::ResumedRun {
 protected:
  Evaluated() {
    run_.keys["model.heads"] = "4";
    run_.keys["train.steps"] = "3";
    run_.keys["eval.every"] = "3";
    run_.keys["eval.batches"] = "2";
    run_.keys["data.validation"] = "\"text\"";
  }
  /// The held-out loss of training after its last step.
  double trained(const Where& where) {
    EXPECT_THAT(train(where, 0), IsEmpty());
    EXPECT_TRUE(result_.eval_loss);
    return result_.eval_loss.value_or(0);
  }
  double loss(const Where& where) {
    result_ = {};
    EXPECT_THAT(evaluate(where), IsEmpty());
    EXPECT_TRUE(result_.eval_loss);
    EXPECT_EQ(result_.last_step, 3);
    EXPECT_EQ(result_.checkpoint, checkpoint("run", 3).string());
    return result_.eval_loss.value_or(0);
  }
};

/// A run that was stopped before the evaluation of its last step, or of a step in its middle, evaluates when it
/// continues: its records are those of a run that was not stopped.
TEST_F(Evaluated, AnEvaluationThatAStopLeftOutIsMadeWhenTheRunContinues) {
  const auto records = [this](const std::string& folder) {
    std::vector<std::string> out;
    for (const report::StepRecord& of : report::read_metrics(run_.folder() / folder / "metrics.jsonl").records)
      out.push_back(text("{} {} {}", of.step, of.loss, of.eval_loss.value_or(0)));
    return out;
  };
  run_.keys["train.steps"] = "6";
  ASSERT_THAT(train({1, 2, 2}, 0), IsEmpty());
  for (const int stopped_at : {3, 6}) {
    const std::string folder = text("stopped-{}", stopped_at);
    ASSERT_THAT(train({1, 2, 2, {{"eval.every", "0"}}}, stopped_at, folder), IsEmpty());
    EXPECT_NE(records(folder).back(), records("run")[static_cast<std::size_t>(stopped_at - 1)]);
    ASSERT_THAT(train({1, 2, 2}, 0, folder), IsEmpty());
    EXPECT_TRUE(result_.eval_loss);
    if (stopped_at == 3) {
      EXPECT_EQ(records(folder), records("run"));
    }
    EXPECT_EQ(records(folder).back(), records("run").back());
  }
}

/// As in training: pipeline, schedule and stages change no bit, other tensor and data sizes round differently.
TEST_F(Evaluated, TheLossIsThatOfTraining) {
  const double trained = this->trained({2, 2, 2});
  for (const Where& where :
       std::vector<Where>{{2, 2, 2},
                          {1, 2, 2},
                          {4, 2, 2},
                          {2, 2, 2, {{"schedule.plugin", "\"sched-zb-h1\""}}},
                          {2, 2, 2, {{"schedule.plugin", "\"sched-1f1b\""}}},
                          {2, 2, 2, {{"memory.recompute", "\"full\""}}},
                          {2, 2, 2, {{"schedule.plugin", "\"sched-interleaved\""}, {"parallel.chunks", "2"}}},
                          {2, 2, 2, {{"parallel.split", "[1, 3]"}}}})
    EXPECT_EQ(loss(where), trained) << where.pipeline;
  EXPECT_EQ(result_.eval_samples, 16);
  EXPECT_EQ(result_.eval_tokens, 16 * 6);
  for (const Where& where : std::vector<Where>{{1, 1, 1}, {1, 4, 1}, {3, 2, 1}, {1, 1, 4, {{"batch.micro", "2"}}}})
    EXPECT_NEAR(loss(where), trained, 1e-6 * trained) << where.tensor;
}

/// The working weights are made from the master weights that the checkpoint has.
TEST_F(Evaluated, InSixteenBitsTheLossIsThatOfTraining) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  for (const char* precision : {"\"bf16\"", "\"fp16\""}) {
    fs::remove_all(run_.folder() / "run");
    run_.keys["train.precision"] = precision;
    const double trained = this->trained({1, 1, 2});
    EXPECT_EQ(loss({2, 1, 2}), trained) << precision;
    for (const char* shard : {"\"states\"", "\"gradients\"", "\"parameters\""})
      EXPECT_EQ(loss({1, 1, 2, {{"optimizer.shard", shard}}}), trained) << precision << ' ' << shard;
    fs::remove_all(run_.folder() / "run");
    const double divided = this->trained({1, 2, 1});
    EXPECT_EQ(loss({2, 2, 1}), divided) << precision;
  }
}

TEST_F(Evaluated, TheOptimizerDoesNotMatter) {
  const double trained = this->trained({1, 1, 2});
  EXPECT_EQ(loss({2, 1, 2, {{"optimizer.plugin", "\"optim-sgd\""}}}), trained);
  for (const char* file : {"optimizer-00000.safetensors", "optimizer-00001.safetensors"})
    ASSERT_TRUE(fs::remove(checkpoint("run", 3) / file));
  EXPECT_EQ(loss({1, 1, 2}), trained);
  fs::resize_file(checkpoint("run", 3) / "weights-00001.safetensors", 100);
  // One rank verifies the file while the other reads it: the first error ends both.
  EXPECT_THAT(evaluate({1, 1, 2}),
              testing::Contains(testing::ContainsRegex(
                  "weights-00001.safetensors: (has 100 bytes, expected 10240|its header would have )")));
}

/// The last batch is not full: its first samples count.
TEST_F(Evaluated, WithoutANumberOfBatchesEverySampleCountsOnce) {
  test::prepare_text(run_, std::string(150, 'a') + std::string(137, 'b'));
  has_corpora_ = true;
  run_.keys["train.precision"] = "\"fp64\"";
  EXPECT_THAT(train({}, 0), IsEmpty());
  const Where whole{.keys = {{"eval.batches", "0"}, {"eval.every", "0"}}};
  const double loss = this->loss(whole);
  const std::int64_t samples = result_.eval_samples;
  EXPECT_EQ(samples, 288 / 6 - 1); // 287 bytes and the end of the document
  EXPECT_EQ(result_.eval_tokens, samples * 6);
  EXPECT_GE(result_.eval_bytes, samples * 6 - 1); // the end of the document may be a target, and stands for nothing
  Where one_by_one = whole;
  one_by_one.keys["batch.global"] = "1";
  EXPECT_NEAR(this->loss(one_by_one), loss, 1e-12 * loss);
  EXPECT_EQ(result_.eval_samples, samples);
  one_by_one.keys = {{"eval.batches", std::to_string(samples)}, {"batch.global", "1"}};
  EXPECT_NEAR(this->loss(one_by_one), loss, 1e-12 * loss);
}

TEST_F(Evaluated, NothingIsWritten) {
  trained({1, 1, 2});
  const auto listing = [&] {
    std::map<std::string, fs::file_time_type> out;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run_.folder() / "run"))
      out[entry.path().string()] = entry.last_write_time();
    return out;
  };
  fs::create_directories(run_.folder() / "run/checkpoints/.step-00000004.of-a-run-that-trains");
  const auto before = listing();
  loss({1, 2, 1});
  EXPECT_EQ(listing(), before);
}

/// Neither gradients, nor the state of the optimizer, nor what a backward reads.
TEST_F(Evaluated, NeedsLessMemoryThanTraining) {
  test::prepare_text(run_, std::string(400, 'a'));
  config::RunConfig config = this->config({2, 2, 1}, 0);
  const auto memory = [&config] {
    std::map<std::string, std::size_t> out;
    const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
    for (const train::RankPlan& plan : checked.plans)
      for (const train::MemoryRow& row : plan.memory) out[row.what] += row.bytes;
    return out;
  };
  const auto trains = memory();
  config.evaluates = true;
  EXPECT_THAT(train({2, 2, 1}, 0), IsEmpty()); // a checkpoint, without which preflight plans nothing
  const auto evaluates = memory();
  EXPECT_EQ(evaluates.at("weights"), trains.at("weights"));
  EXPECT_EQ(evaluates.at("optimizer state"), 0u);
  EXPECT_GT(trains.at("gradients"), 0u);
  EXPECT_EQ(evaluates.at("gradients"), 0u);
  EXPECT_LT(2 * evaluates.at("activations"), trains.at("activations"));
}

class RefusedEvaluation : public Evaluated {
 protected:
  RefusedEvaluation() { test::prepare_text(run_, std::string(400, 'a')); }
  /// What preflight says, after one key has changed.
  std::string refusal(const std::string& key = "log.every", const std::string& value = "1") {
    config::RunConfig config = this->config({.keys = {{key, value}}}, 0);
    config.evaluates = true;
    std::string out;
    const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
    for (const Refusal& refused : checked.refusals) out += refused.message + "\n  " + refused.hint;
    return out;
  }
};

TEST_F(RefusedEvaluation, NamesWhatDoesNotFit) {
  EXPECT_THAT(refusal(), testing::MatchesRegex("run.dir = \".*/run\" has no complete checkpoint\n"
                                               "  train the run, which saves one, or name one with --checkpoint"));
  has_corpora_ = true;
  ASSERT_THAT(train({}, 0), IsEmpty());
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal("optimizer.plugin", "\"optim-sgd\""), "");
  EXPECT_THAT(refusal("model.hidden", "16"),
              HasSubstr(": parameter \"embedding/tokens.weight\" has shape [257, 8] in the checkpoint and [257, 16] in "
                        "this run. Changed: model.hidden = 16 (was 8)"));
  EXPECT_THAT(refusal("model.vocab", "90"), HasSubstr("token 0 has id 97, which is not in [0, 89] (model.vocab = 90)"));
  EXPECT_THAT(refusal("model.sequence", "500"), HasSubstr("holds 401 tokens"));
}

} // namespace
} // namespace triax
