// triax check of a run that is accepted, and what its exit status and streams promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/version.h"

namespace triax::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A folder with tests/golden's data-missing case and the data that it misses.
class Check : public testing::Test {
 protected:
  Check() {
    write_file(work_ / "run.toml", read_file(GOLDEN_CASES "/data-missing/run.toml"));
    write_file(work_ / "text.txt", std::string(1000, 'x'));
    run(work_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  }
  Outcome check(const std::string& arguments, const std::string& streams) const {
    return run(work_.path(), "check run.toml --set data.path=text " + arguments, streams);
  }
  TempFolder work_;
};

TEST_F(Check, TellsValuesPluginsLayoutAndMemory) {
  const Outcome told = check("--set train.steps=7", "2>&1");
  EXPECT_EQ(told.status, 0);
  EXPECT_THAT(told.text, HasSubstr("steps              = 7 "));
  EXPECT_THAT(told.text, HasSubstr("# --set\n"));
  EXPECT_THAT(told.text, HasSubstr("# run.toml:4:10\n"));
  EXPECT_THAT(told.text, HasSubstr(TRIAX_BINARY_DIR "/lib/triax/plugins/model-gpt.so\n"));
  EXPECT_THAT(told.text, HasSubstr("     0         0     0       0  embedding, block 0-1, head\n"));
  EXPECT_THAT(told.text, HasSubstr("# derived: from data.path's tokenizer file (.json)\n"));
  EXPECT_THAT(told.text,
              HasSubstr("  rank  weights  gradients  optimizer state  activations  batches  scratch  together\n"));
  EXPECT_THAT(told.text, HasSubstr("\ndata\n  corpus"));
  EXPECT_THAT(told.text, HasSubstr("model: 34,720 parameters, 139 kB of weights in f32\n"));
  EXPECT_THAT(told.text, HasSubstr("step: 4 sequences = 1 rank x 2 microbatches of 2\n"));
}

TEST_F(Check, TellsOfEveryRankAndHowTheyShareTheCores) {
  const std::string four = "--set parallel.data=2 --set parallel.tensor=2";
  const Outcome told = check(four, "2>&1");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("\nlayout: pipeline 1 x data 2 x tensor 2 = 4 ranks as threads of this process, "));
  EXPECT_THAT(told.text, HasSubstr("  0, 2         0   0-1       0  embedding, block 0-1, head\n"
                                   "  1, 3         0   0-1       1  embedding, block 0-1, head\n"));
  EXPECT_THAT(told.text, HasSubstr("\nmemory of each rank; of all 4 together "));
  EXPECT_THAT(told.text, HasSubstr("model: 34,720 parameters"));
  EXPECT_THAT(told.text, HasSubstr("step: 4 sequences = 2 data ranks x 1 microbatches of 2\n"));

  const auto object = nlohmann::json::parse(check(four + " --json", "2>/dev/null").text);
  EXPECT_EQ(object["placement"]["ranks"], 4);
  EXPECT_EQ(object["placement"]["as"], "threads");
  EXPECT_EQ(object["placement"]["device"], "host");
  EXPECT_GE(object["placement"]["threads_per_rank"], 1);
  EXPECT_GE(object["placement"]["cores"], 1);
  ASSERT_EQ(object["ranks"].size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& of = object["ranks"][static_cast<std::size_t>(rank)];
    EXPECT_EQ(of["rank"], rank);
    EXPECT_EQ(of["tensor"], rank % 2);
    EXPECT_EQ(of["data"], rank / 2);
    EXPECT_GT(of["memory_bytes"]["weights"], 4 * 34720 / 2);
  }
}

TEST_F(Check, AllRanksTogetherHaveToFitTheMachine) {
  const std::string large = "--set model.hidden=512 --set batch.micro=1 ";
  EXPECT_EQ(check(large, "2>&1").status, 0);
  const Outcome refused = check(large + "--set batch.global=65536 --set parallel.data=65536", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr(" of memory for its 65536 ranks, and this machine has "));
}

TEST_F(Check, SpeaksOfThreadsOnlyWhereTheyCompute) {
  EXPECT_THAT(check("", "2>&1").text, HasSubstr("= 1 rank, "));
  const std::string on_gpu =
      "--no-device --set kernels.plugin=kernels-elsewhere --set plugins.path=[\"'" TRIAX_BINARY_DIR
      "/tests/train/plugins'\"]";
  const Outcome told = check(on_gpu, "2>&1");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("= 1 rank, computing on a GPU\n"));
  EXPECT_THAT(told.text, Not(HasSubstr("CPU thread")));
  const auto object = nlohmann::json::parse(check(on_gpu + " --json", "2>/dev/null").text);
  EXPECT_EQ(object["placement"]["device"], "cuda");
  EXPECT_FALSE(object["placement"].contains("threads_per_rank"));
}

TEST_F(Check, NotesARunThatEndsInItsWarmUp) {
  const std::string note =
      "lr.warmup_steps = 51 is more than train.steps = 50: the run ends in its warm-up, below optimizer.lr = 0.003";
  const Outcome told = check("--set lr.warmup_steps=51", "2>&1");
  EXPECT_EQ(told.status, 0) << "as when a run is tried out with a few steps";
  EXPECT_THAT(told.text, HasSubstr("\nnote: " + note + "\n\nrun.toml: ready to train\n"));
  EXPECT_THAT(check("--set lr.warmup_steps=50", "2>&1").text, Not(HasSubstr("note: ")));
  const auto object = nlohmann::json::parse(check("--json --set lr.warmup_steps=51", "2>/dev/null").text);
  EXPECT_EQ(object["notes"][0], note);
}

TEST_F(Check, ListsWhatASwappedPluginDropped) {
  write_file(work_ / "next.toml", "include = [\"run.toml\"]\n[optimizer]\nplugin = \"optim-sgd\"\n");
  std::string run_text = read_file(work_ / "run.toml");
  replace_all(run_text, "lr = 3e-3\n", "lr = 3e-3\nbeta1 = 0.8\n");
  write_file(work_ / "run.toml", run_text);
  const Outcome told = run(work_.path(), "check next.toml --set data.path=text", "2>&1");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("  optimizer.beta1 = 0.8 (run.toml:24:1), a key of optim-adamw\n"));
}

TEST_F(Check, JsonIsOneObjectAlsoOfARefusedRun) {
  const auto accepted = nlohmann::json::parse(check("--json", "2>/dev/null").text);
  EXPECT_TRUE(accepted["accepted"]);
  EXPECT_EQ(accepted["values"]["model.layers"]["value"], 2);
  EXPECT_EQ(accepted["values"]["lr.decay"]["value"], "constant");
  EXPECT_EQ(accepted["ranks"][0]["layers"].size(), 4u);
  EXPECT_GT(accepted["ranks"][0]["memory_bytes"]["weights"], 4 * 34720);
  EXPECT_EQ(accepted["parameters"], 34720);

  const Outcome refused = check("--json --set train.steps=0", "2>/dev/null");
  EXPECT_EQ(refused.status, 2);
  const auto object = nlohmann::json::parse(refused.text);
  EXPECT_FALSE(object["accepted"]);
  EXPECT_EQ(object["refusals"][0], "--set: train.steps = 0 is below 1");
}

/// "\\u001B" in a TOML is an escape character: it must not reach the terminal as such.
TEST_F(Check, ATextOfTheTomlDoesNotSteerTheTerminal) {
  write_file(work_ / "odd.toml",
             "include = [\"run.toml\"]\n[train]\n\"a\\u001B[2J\\nb\" = 1\n[schedule]\nplugin = \"x\\r\"\n");
  const Outcome refused = run(work_.path(), "check odd.toml --set data.path=text", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("odd.toml:3:1: [train] has no key \"a\\u001B[2J\\u000Ab\"\n  its keys:"));
  EXPECT_THAT(refused.text, HasSubstr("schedule.plugin \"x\\u000D\" was not found"));
  EXPECT_EQ(refused.text.find('\x1b'), std::string::npos);
  EXPECT_EQ(refused.text.find('\r'), std::string::npos);
}

TEST_F(Check, AModelLargerThanTheMachineIsRefusedUnlessTheMachineIsLeftOut) {
  const std::string huge = "--set model.hidden=64000 --set model.layers=300";
  const Outcome refused = check(huge, "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("of memory, and this machine has "));
  EXPECT_EQ(check(huge + " --no-device", "2>&1").status, 0);
}

TEST_F(Check, AResultThatCannotBeWrittenIsAFailure) {
  const Outcome full = check("", "2>&1 >/dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.text, "standard output could not be written\n");
}

TEST(Program, AResultForAClosedOutputIsAFailure) {
  for (const char* verb :
       {"--version", "--help", "plugins list", "schedule --scheduler sched-1f1b --pipeline 2 --microbatches 2",
        "simulate --scheduler sched-1f1b --pipeline 2 --microbatches 2 --forward-ms 1 --input-ms 1 "
        "--weight-ms 1 --link-ms 0"}) {
    const Outcome told = run(".", verb, "2>&1 >&-");
    EXPECT_EQ(told.status, 1) << verb;
    EXPECT_THAT(told.text, HasSubstr("standard output could not be written")) << verb;
  }
  const TempFolder work; // whose first file would take the place of the closed one
  const std::string shape = "schedule --scheduler sched-1f1b --pipeline 1 --microbatches 1 --format csv ";
  EXPECT_EQ(run(work.path(), shape + "--output rows.csv", "2>&1 >&-").status, 0);
  EXPECT_EQ(read_file(work / "rows.csv"), "0F0,0B0\n");
}

TEST(Program, TellsItsVersionAndItsVerbs) {
  EXPECT_EQ(run(".", "--version", "2>/dev/null").text, "triax " TRIAX_VERSION "\n");
  const Outcome help = run(".", "--help", "2>/dev/null");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text, HasSubstr("check"));
}

} // namespace
} // namespace triax::test
