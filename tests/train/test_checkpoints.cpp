// SPDX-License-Identifier: Apache-2.0
// A run that is saved on one layout and continued on another has the bits of a run that never stopped; and what cannot
// be continued is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "checkpoint/folder.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"
#include "triax/version.h"

namespace triax {
namespace {

namespace fs = std::filesystem;

using test::Where;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Resumed = test::ResumedRun;

/// Same tensor and data sizes: equal to never having stopped, whatever the pipeline, schedule and stages.
TEST_F(Resumed, OnAnyPipelineHasTheBitsOfARunThatDidNotStop) {
  const std::vector<Where> layouts = {{1, 2, 2},
                                      {2, 2, 2, {{"schedule.plugin", "\"sched-zb-h1\""}}},
                                      {2, 2, 2, {{"parallel.split", "[1, 3]"}, {"train.stall_timeout_s", "61"}}},
                                      {4, 2, 2},
                                      {1, 2, 2, {{"memory.recompute", "\"full\""}}}};
  ASSERT_THAT(train(layouts[0], 8, "whole"), IsEmpty());
  for (std::size_t i = 0; i < layouts.size(); ++i)
    ASSERT_THAT(train(layouts[i], i + 1 < layouts.size() ? static_cast<int>(i) + 1 : 8), IsEmpty()) << i;
  EXPECT_EQ(result_.steps, 4);
  EXPECT_EQ(result_.last_step, 8);
  EXPECT_EQ(content("run", 8), content("whole", 8));
  EXPECT_EQ(state("run", 8), state("whole", 8));
}

/// Each part is written once, by the rank that owns it, whatever the sizes: what is read is what was written.
TEST_F(Resumed, ACheckpointHasTheSameContentWhateverReadsAndWritesIt) {
  ASSERT_THAT(train({2, 2, 1}, 2), IsEmpty());
  const auto first = content("run", 2);
  EXPECT_EQ(first.size(), 3 * (first.size() / 3)); // weights, m, v
  for (const Where& where : std::vector<Where>{{1, 1, 1}, {4, 1, 2}, {1, 4, 1, {{"model.heads", "4"}}}, {2, 1, 4}}) {
    fs::remove_all(run_.folder() / "copy");
    fs::copy(run_.folder() / "run", run_.folder() / "copy", fs::copy_options::recursive);
    run_.keys["optimizer.lr"] = "0"; // the next step changes no weight, and decay multiplies by 1
    run_.keys["lr.decay"] = "\"constant\"";
    ASSERT_THAT(train(where, 3, "copy"), IsEmpty());
    auto after = content("copy", 3);
    for (const auto& [name, bytes] : first) {
      if (!name.ends_with("(master)")) continue;
      EXPECT_TRUE(after.at(name) == bytes) << name;
    }
    EXPECT_EQ(after.size(), first.size());
  }
}

/// Other tensor and data sizes add in another order.
TEST_F(Resumed, OnOtherSizesStaysWithinRounding) {
  run_.keys["train.precision"] = "\"fp64\"";
  ASSERT_THAT(train({1, 1, 1}, 8, "whole"), IsEmpty());
  const double loss = result_.last_loss;
  for (const Where& where : std::vector<Where>{{2, 2, 1}, {1, 1, 4}, {2, 1, 2}}) {
    fs::remove_all(run_.folder() / "run");
    ASSERT_THAT(train(where, 4), IsEmpty());
    ASSERT_THAT(train({1, 2, 2}, 6), IsEmpty());
    ASSERT_THAT(train({1, 1, 1}, 8), IsEmpty());
    EXPECT_NEAR(result_.last_loss, loss, 1e-12 * loss);
  }
}

TEST_F(Resumed, TheLossScaleContinues) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run_.keys["train.precision"] = "\"fp16\"";
  run_.keys["loss_scale.initial"] = "1e9"; // skips steps
  run_.keys["loss_scale.window_steps"] = "3";
  run_.keys["train.steps"] = "60";
  const Where where{2, 1, 1};
  ASSERT_THAT(train(where, 60, "whole"), IsEmpty());
  for (const int stop : {3, 41, 60}) ASSERT_THAT(train(where, stop), IsEmpty());
  EXPECT_EQ(content("run", 60), content("whole", 60));
  EXPECT_EQ(state("run", 60), state("whole", 60));
  EXPECT_LT(state("run", 60).optimizer_steps, 60);
}

TEST_F(Resumed, WhileItIsWrittenTrainingContinues) {
  run_.keys["checkpoint.every"] = "2";
  run_.keys["checkpoint.keep"] = "2";
  run_.keys["checkpoint.keep_every"] = "4";
  ASSERT_THAT(train({2, 1, 2}, 0), IsEmpty());
  std::vector<std::int64_t> steps;
  for (const checkpoint::FoundCheckpoint& found : checkpoint::checkpoints_in(run_.folder() / "run/checkpoints"))
    steps.push_back(found.step);
  EXPECT_THAT(steps, ElementsAre(4, 6, 8));
  run_.keys["checkpoint.async"] = "false";
  ASSERT_THAT(train({2, 1, 2}, 0, "other"), IsEmpty());
  for (const std::int64_t step : {4, 6, 8}) EXPECT_EQ(content("run", step), content("other", step)) << step;
}

TEST_F(Resumed, AnotherBatchSizeContinuesWithTheNextSample) {
  ASSERT_THAT(train({}, 3), IsEmpty());
  run_.keys["batch.global"] = "4";
  ASSERT_THAT(train({}, 5), IsEmpty());
  EXPECT_EQ(state("run", 5).samples, 3 * 8 + 2 * 4);
}

TEST_F(Resumed, TheWeightsAloneBeginANewTraining) {
  ASSERT_THAT(train({1, 2, 1}, 3, "first"), IsEmpty());
  run_.keys["checkpoint.from"] = text("\"{}\"", checkpoint("first", 3).string());
  run_.keys["checkpoint.load"] = "\"weights\"";
  run_.keys["optimizer.plugin"] = "\"optim-sgd\"";
  run_.keys["optimizer.lr"] = "0";
  run_.keys["lr.decay"] = "\"constant\"";
  ASSERT_THAT(train({2, 1, 1}, 1), IsEmpty());
  const auto before = content("first", 3), after = content("run", 1);
  for (const auto& [name, bytes] : after) EXPECT_TRUE(before.at(name) == bytes) << name;
  EXPECT_EQ(state("run", 1).samples, 8);
}

TEST_F(Resumed, DamageIsFoundBeforeAnythingStarts) {
  ASSERT_THAT(train({1, 2, 2}, 2), IsEmpty());
  const fs::path file = checkpoint("run", 2) / "weights-00003.safetensors";
  std::fstream of(file, std::ios::in | std::ios::out | std::ios::binary);
  of.seekp(-2, std::ios::end);
  of.put('?');
  of.close();
  const std::vector<std::string> errors = train({2, 1, 1}, 4);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors, testing::Contains(HasSubstr("weights-00003.safetensors: checksum mismatch in tensor \"")));
  EXPECT_FALSE(fs::exists(checkpoint("run", 4)));
}

TEST_F(Resumed, AFolderThatCannotBeWrittenIsCountedAndTrainingContinues) {
  run_.keys["checkpoint.every"] = "4";
  run_.keys["run.dir"] = "\"run\"";
  const config::RunConfig config = this->config({1, 1, 2}, 0);
  const train::RunFolder reserved(config, "# resolved\n");
  const auto body = [&](train::Rank& rank, train::Checkpoints& checkpoints, int index, auto&) {
    if (index == 0) test::write_file(run_.folder() / "run/checkpoints", "not a folder");
    return train::run_loop(config, rank, signals_, {}, &checkpoints);
  };
  ASSERT_THAT(start(config, test::TinySource(), body), IsEmpty());
  EXPECT_EQ(result_.steps, 8);
  EXPECT_EQ(result_.missing.checkpoints, 2);
  EXPECT_EQ(result_.checkpoint, "");
}

/// A checkpoint of another branch of the run must be neither the newest nor a reason to remove a new one.
TEST_F(Resumed, FromAnOlderCheckpointOfItsOwnTheOthersAreMovedAside) {
  run_.keys["checkpoint.every"] = "2";
  run_.keys["checkpoint.keep"] = "4";
  ASSERT_THAT(train({}, 0), IsEmpty());
  const auto eight = content("run", 8);
  run_.keys["checkpoint.resume"] = "\"never\"";
  run_.keys["checkpoint.from"] = text("\"{}\"", checkpoint("run", 4).string());
  run_.keys["checkpoint.keep"] = "1";
  ASSERT_THAT(train({}, 6), IsEmpty());
  EXPECT_EQ(result_.steps, 2);
  EXPECT_TRUE(result_.is_saved());
  EXPECT_THAT(checkpoint::checkpoints_in(run_.folder() / "run/checkpoints"), testing::SizeIs(1));
  EXPECT_TRUE(fs::exists(run_.folder() / "run/checkpoints-1/step-00000008"));
  run_.keys["checkpoint.resume"] = "\"auto\"";
  ASSERT_THAT(train({}, 8), IsEmpty());
  EXPECT_EQ(result_.steps, 2);
  EXPECT_EQ(content("run", 8), eight);
}

/// The folder of another run has records that are not of this one.
TEST_F(Resumed, FromAnotherRunTheRecordsBeginAfterItsStep) {
  ASSERT_THAT(train({}, 2), IsEmpty());
  ASSERT_THAT(train({}, 3, "first"), IsEmpty());
  run_.keys["checkpoint.resume"] = "\"never\"";
  run_.keys["checkpoint.from"] = text("\"{}\"", checkpoint("first", 3).string());
  ASSERT_THAT(train({}, 5), IsEmpty());
  const std::string records = test::read_file(run_.folder() / "run/metrics.jsonl");
  EXPECT_TRUE(records.starts_with("{\"step\":4,")) << records;
  EXPECT_TRUE(fs::exists(run_.folder() / "run/metrics-1.jsonl"));
}

/// An optimizer's count of its steps, which is not in tensors.
TEST_F(Resumed, PluginsContinueFromTheirSavedState) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-counting\"";
  ASSERT_THAT(train({1, 2, 2}, 8, "whole"), IsEmpty());
  ASSERT_THAT(train({1, 2, 2}, 3), IsEmpty());
  ASSERT_THAT(train({2, 2, 2}, 8), IsEmpty());
  EXPECT_EQ(content("run", 8), content("whole", 8));
  EXPECT_EQ(state("run", 8), state("whole", 8));
  EXPECT_EQ(state("run", 3).plugins, (std::map<std::string, std::string>{{"optimizer", "3"}}));
}

/// Rank 0's text would be saved for all.
TEST_F(Resumed, AStateThatDiffersBetweenRanksIsNotSaved) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-counting\"";
  run_.keys["optimizer.differs"] = "true";
  ASSERT_THAT(train({1, 2, 2}, 3), IsEmpty());
  EXPECT_EQ(result_.missing.checkpoints, 1);
  EXPECT_FALSE(fs::exists(checkpoint("run", 3)));
}

TEST_F(Resumed, APluginThatCannotSaveItsStateIsCountedAndTrainingContinues) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-counting\"";
  run_.keys["optimizer.cannot_save"] = "2";
  run_.keys["checkpoint.every"] = "2";
  ASSERT_THAT(train({1, 2, 2}, 4), IsEmpty());
  EXPECT_EQ(result_.missing.checkpoints, 1);
  EXPECT_FALSE(fs::exists(checkpoint("run", 2)));
  EXPECT_TRUE(fs::exists(checkpoint("run", 4)));

  run_.keys["optimizer.cannot_save"] = "0";
  EXPECT_THAT(train({1, 2, 2}, 4, "another"), Each(HasSubstr("no state after 0 steps"))) << "before the first step";
}

class RefusedResume : public Resumed {
 protected:
  RefusedResume() { test::prepare_text(run_, std::string(400, 'a')); }
  /// What preflight says about a run that finds a checkpoint, after one key has changed.
  std::string refusal(const std::string& key, const std::string& value) {
    const config::RunConfig config = this->config({.keys = {{key, value}}}, 0);
    const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
    std::string out = checked.resume;
    for (const Refusal& refused : checked.refusals) out = refused.message;
    return out;
  }
};

TEST_F(RefusedResume, NamesTheKeysAndTheChoices) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("model.hidden", "16"),
              testing::MatchesRegex("cannot continue from .*/step-00000002: parameter \"embedding/tokens.weight\" has "
                                    "shape \\[257, 8\\] in the checkpoint and \\[257, 16\\] in this run. Changed: "
                                    "model.hidden = 16 \\(was 8\\)"));
  EXPECT_THAT(refusal("model.layers", "5"), HasSubstr("parameter \"block 4/"));
  EXPECT_THAT(refusal("model.layers", "3"),
              HasSubstr("is not in the model of this run. Changed: model.layers = 3 (was 4)"));
  EXPECT_THAT(refusal("model.vocab", "300"), HasSubstr("model.vocab = 300 (was 257)"));
  EXPECT_THAT(refusal("train.precision", "\"bf16\""), HasSubstr("continues after step 2 from "));
  EXPECT_THAT(refusal("optimizer.lr", "0.5"), HasSubstr("; changed: optimizer.lr = 0.5 (was 0.01)"));
  EXPECT_THAT(refusal("log.level", "\"warn\""), Not(HasSubstr("changed")));
}

/// With equal shapes, and another function of the same weights.
TEST_F(RefusedResume, AModelThatGivesTheWeightsAnotherMeaningIsRefused) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("model.heads", "4"),
              testing::MatchesRegex("cannot continue from .*/step-00000002: its weights or its samples have another "
                                    "meaning in this model. Changed: model.heads = 4 \\(was 2\\)"));
  EXPECT_THAT(refusal("model.norm_eps", "1e-6"), HasSubstr("Changed: model.norm_eps = 1e-06 (was 1e-05)"));
  EXPECT_THAT(refusal("model.dropout", "0.2"),
              AllOf(StartsWith("continues after step 2 "), EndsWith("; changed: model.dropout = 0.2 (was 0.1)")));
  run_.keys["run.dir"] = "\"other\"";
  run_.keys["checkpoint.from"] = text("\"{}\"", checkpoint("run", 2).string());
  EXPECT_THAT(refusal("model.heads", "4"), HasSubstr("another meaning"));
  run_.keys["checkpoint.load"] = "\"weights\"";
  EXPECT_THAT(refusal("model.heads", "4"),
              AllOf(StartsWith("begins with the weights of "), EndsWith("; changed: model.heads = 4 (was 2)")));
}

TEST_F(RefusedResume, OtherRotaryPositionsAreAnotherModel) {
  run_.use_llama(2);
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("model.rope_theta", "500000"), HasSubstr("Changed: model.rope_theta = 5e+05 (was 10000.0)"));
  EXPECT_THAT(refusal("train.seed", "7"), HasSubstr("continues after step 2 from "));
}

/// A later version of a plugin may have more options.
TEST_F(RefusedResume, AnOptionThatTheCheckpointDoesNotKnowMayHaveItsDefault) {
  ASSERT_THAT(train({}, 2), IsEmpty());
  const fs::path file = checkpoint("run", 2) / "manifest.json";
  checkpoint::Manifest manifest = checkpoint::read_manifest(file);
  ASSERT_EQ(manifest.config.erase("model.norm_eps"), 1u);
  test::write_file(file, checkpoint::to_json(manifest));
  EXPECT_THAT(refusal("train.seed", "7"), AllOf(HasSubstr("continues after step 2 from "), Not(HasSubstr("norm_eps"))));
  EXPECT_THAT(refusal("model.norm_eps", "1e-6"), HasSubstr("Changed: model.norm_eps = 1e-06 (was not set)"));
}

/// Files of the same name and size.
TEST_F(RefusedResume, OtherTokensUnderTheSameNameAreRefusedUnlessTheyAreAccepted) {
  has_corpora_ = true;
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["eval.every"] = "1";
  run_.keys["train.stop_at"] = "0";
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("log.level", "\"warn\""), Not(HasSubstr("changed")));
  test::prepare_text(run_, std::string(200, 'a') + "b" + std::string(199, 'a'));
  EXPECT_THAT(refusal("log.level", "\"warn\""),
              testing::MatchesRegex("cannot continue from .*/step-00000002: the token files have changed: content of "
                                    "data.path is 401 tokens, checksum [0-9a-f]{32} \\(was 401 tokens, checksum "
                                    "[0-9a-f]{32}\\)"));
  const std::string accepted = refusal("checkpoint.changed_data", "\"accept\"");
  EXPECT_THAT(accepted, AllOf(StartsWith("continues after step 2 "), HasSubstr("; changed: content of data.path is "),
                              HasSubstr(", content of data.validation is ")));
  for (const char* end : {".bin", ".idx", ".json"})
    fs::copy_file(run_.folder() / (std::string("text") + end), run_.folder() / (std::string("other") + end));
  EXPECT_THAT(refusal("data.path", "\"other\""), AllOf(HasSubstr("; changed: data.path = "), HasSubstr("content of ")))
      << "another name: the user knows";
  run_.keys["checkpoint.changed_data"] = "\"accept\"";
  ASSERT_THAT(train({}, 3), IsEmpty());
  run_.keys.erase("checkpoint.changed_data");
  EXPECT_THAT(refusal("log.level", "\"warn\""), Not(HasSubstr("changed"))) << "step 3 has used the new content";
}

TEST_F(RefusedResume, ACheckpointToBeginWithMustExistUntilTheRunHasItsOwn) {
  EXPECT_THAT(refusal("checkpoint.from", "\"gone\""),
              AllOf(StartsWith("checkpoint.from: "), EndsWith("/gone: does not exist")));
  fs::create_directories(run_.folder() / "empty");
  EXPECT_THAT(refusal("checkpoint.from", "\"empty\""),
              EndsWith("/empty: is not a checkpoint: it has no manifest.json"));
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("checkpoint.from", "\"gone\""), HasSubstr("continues after step 2 from "));
  run_.keys["run.dir"] = "\"other\"";
  EXPECT_THAT(refusal("checkpoint.from", "\"run\""), HasSubstr("/run: is the folder of a run, not of a checkpoint"));
}

TEST_F(RefusedResume, WhatIsNotAFolderOfCheckpointsIsNamed) {
  fs::create_directories(run_.folder() / "run");
  fs::create_symlink("gone", run_.folder() / "run/checkpoints");
  run_.keys["run.dir"] = "\"run\"";
  EXPECT_THAT(refusal("train.seed", "2"),
              AllOf(StartsWith("run.dir: "), HasSubstr("is a symbolic link to a folder that does not exist")));
  fs::remove(run_.folder() / "run/checkpoints");
  test::write_file(run_.folder() / "run/checkpoints", "x");
  EXPECT_THAT(refusal("train.seed", "2"), AllOf(StartsWith("run.dir: "), HasSubstr("checkpoints: is not a folder")));
}

TEST_F(RefusedResume, KernelsThatOnlyModelTimeDoNotContinueATraining) {
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_EQ(refusal("kernels.plugin", "\"kernels-sim\""),
            "run.dir has the checkpoints of a training, but kernels-sim does not compute");
}

TEST_F(RefusedResume, OptimizerStateThatIsNotThereIsNamed) {
  run_.keys["optimizer.plugin"] = "\"optim-sgd\"";
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_THAT(refusal("optimizer.plugin", "\"optim-adamw\""),
              HasSubstr("optimizer state \"m\" of parameter \"embedding/tokens.weight\" is not in the checkpoint. "
                        "Changed: optimizer.plugin = \"optim-adamw\" (was \"optim-sgd\")"));
}

TEST_F(RefusedResume, AStateThatAPluginNeedsOrDoesNotReadIsNamed) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["optimizer.plugin"] = "\"optim-sgd\"";
  ASSERT_THAT(train({}, 2), IsEmpty());
  EXPECT_EQ(refusal("optimizer.plugin", "\"optim-counting\""),
            "the checkpoint, of optim-sgd " TRIAX_VERSION ", has no state that optim-counting can continue from");
  run_.keys["optimizer.plugin"] = "\"optim-counting\"";
  ASSERT_THAT(train({}, 2, "other"), IsEmpty());
  EXPECT_EQ(refusal("optimizer.forgets", "true"),
            "the checkpoint has a state of optim-counting 0.1.0 that optim-counting does not read");
}

#ifndef __SANITIZE_THREAD__ // which uses extra memory for each byte that is copied
/// The kernel provides memory at its first use. A step waits for a copy, and must not wait for that.
TEST(Staging, IsProvidedBeforeTheFirstSave) {
  test::TinyRun tiny;
  tiny.keys["model.hidden"] = "256";
  tiny.keys["checkpoint.every"] = "1";
  const config::RunConfig config = tiny.config();
  test::TinyRank rank(config);
  const Layout layout = Layout::ptd(1, 1, 1);
  control::LocalStore store;
  train::Checkpoints checkpoints(config, layout, 0, *rank, store, null_log());
  rank->step();
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  const long before = faults();
  checkpoints.save();
  const long during = faults() - before;
  checkpoints.wait();
  constexpr std::size_t kPage = 4096;
  const auto pages = static_cast<long>(train::staging_bytes(rank->kept()) / kPage);
  EXPECT_GT(pages, 1000);
  EXPECT_LT(during, pages / 10);
}
#endif

} // namespace
} // namespace triax
