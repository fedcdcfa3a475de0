// SPDX-License-Identifier: Apache-2.0
// triax check of a valid run: its output, exit status and streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "golden/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/version.h"

namespace triax::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A folder with the data-missing case of tests/golden, and the data that the case lacks.
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
  EXPECT_THAT(told.text, HasSubstr("\n"
                                   "memory of each rank; all 4 ranks: "));
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

const char* const kManyRanks =
    "--no-device --set model.layers=24 --set parallel.pipeline=24 --set batch.global=48 --set batch.micro=1 ";

/// A table of 24 rows, and another for the memory, would hide the important facts.
TEST_F(Check, OfManyRanksTheSummaryComesFirst) {
  const Outcome told = check(kManyRanks, "2>&1");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_LE(std::count(told.text.begin(), told.text.end(), '\n'), 24) << told.text;
  EXPECT_THAT(told.text, HasSubstr("\nlayout: pipeline 24 x data 1 x tensor 1 = 24 ranks"));
  EXPECT_THAT(told.text, HasSubstr("\nmemory: rank 23 needs most, "));
  EXPECT_THAT(told.text, HasSubstr("\nactivations of rank 23: "));
  EXPECT_THAT(told.text, HasSubstr(" = 48 microbatches x (1 block x "));
  EXPECT_THAT(told.text, HasSubstr("\nstages: parameters "));
  EXPECT_THAT(told.text, HasSubstr("\nuneven stages: a step takes "));
  EXPECT_THAT(told.text, HasSubstr("     22      1  1, 2 ... 22  block"));
  EXPECT_THAT(told.text,
              HasSubstr("\n--all prints every value, the plugins, the data, and the memory of all 24 ranks\n"));
  EXPECT_THAT(told.text, Not(HasSubstr("[model]")));

  const Outcome all = check(kManyRanks + std::string("--all"), "2>&1");
  EXPECT_THAT(all.text, HasSubstr("[model]"));
  EXPECT_THAT(all.text, HasSubstr("    11        11     0       0  block 11\n"));
  EXPECT_THAT(all.text, HasSubstr("\nmemory: rank 23 needs most, "));
}

TEST_F(Check, JsonHasTheSummaryOfEveryRun) {
  const auto object =
      nlohmann::json::parse(check(std::string(kManyRanks) + "--memory 1GiB --json", "2>/dev/null").text);
  EXPECT_EQ(object["memory"]["largest_rank"], 23);
  EXPECT_EQ(object["memory"]["limit_bytes"], 1 << 30);
  EXPECT_TRUE(object["memory"]["fits"]);
  ASSERT_EQ(object["ranks"].size(), 24u);
  for (const auto& rank : object["ranks"]) {
    std::size_t activations = 0;
    for (const auto& part : rank["activations"])
      activations += part["layers"].get<std::size_t>() * part["microbatches"].get<std::size_t>() *
                     part["bytes"].get<std::size_t>();
    EXPECT_EQ(activations, rank["memory_bytes"]["activations"]);
  }
  ASSERT_EQ(object["balance"]["stages"].size(), 24u);
  EXPECT_GT(object["balance"]["stages"][23]["forward_flops"], object["balance"]["stages"][1]["forward_flops"]);
  EXPECT_GT(object["balance"]["longer_than_even"], 0);
  EXPECT_TRUE(nlohmann::json::parse(check("--json", "2>/dev/null").text)["memory"]["fits"].is_null());
}

TEST_F(Check, ARankThatDoesNotFitItsDeviceIsRefused) {
  const std::string two = "--no-device --set parallel.data=2 --memory ";
  const Outcome fits = check(two + "1GiB", "2>&1");
  EXPECT_EQ(fits.status, 0) << fits.text;
  EXPECT_THAT(fits.text, HasSubstr("; it fits in --memory 1GiB, 1.07 GB are left\n"));

  const Outcome refused = check(two + "100KiB", "2>&1");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, testing::StartsWith("--memory 100KiB (102 kB): rank 0 needs "));
  EXPECT_THAT(refused.text, HasSubstr(" more than its device has: activations "));
  EXPECT_THAT(refused.text,
              HasSubstr("; 2 ranks do not fit\n  use a smaller batch.micro, or a larger parallel.tensor"));
  const Outcome states = check("--no-device --set parallel.data=4 --set batch.micro=1 --memory 100KiB", "2>&1");
  EXPECT_EQ(states.status, 2);
  EXPECT_THAT(states.text, HasSubstr(" more than its device has: optimizer state "));
  EXPECT_THAT(states.text, HasSubstr("; 4 ranks do not fit\n  use a larger parallel.tensor or parallel.pipeline: "));

  for (const char* size : {"80", "GiB", "0GiB", "-1GiB", "80gib", "nanGB", "1e30GB", "80GiBs", "''"}) {
    const Outcome invalid = check(two + size, "2>&1");
    EXPECT_EQ(invalid.status, 2) << size;
    EXPECT_THAT(invalid.text, HasSubstr("--memory")) << size;
    EXPECT_THAT(invalid.text, HasSubstr("must be a size above 0 with its unit")) << size;
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

TEST_F(Check, APluginThatCrashesIsRefusedWhereItIsNamed) {
  const std::string crashing =
      "--set schedule.plugin=sched-crashing --set schedule.where=create --set plugins.path=[\"'" TRIAX_BINARY_DIR
      "/tests/train/plugins'\"]";
  const std::string refusal =
      "--set: schedule.plugin \"sched-crashing\": its constructor crashed with SIGSEGV (Segmentation fault), "
      "file " TRIAX_BINARY_DIR "/tests/train/plugins/sched-crashing.so\n  this is a defect of the plugin: ";
  const Outcome told = check(crashing, "2>&1 >/dev/null");
  EXPECT_EQ(told.status, 2);
  EXPECT_THAT(told.text, testing::StartsWith(refusal));
  const auto object = nlohmann::json::parse(check(crashing + " --json", "2>/dev/null").text);
  EXPECT_FALSE(object["accepted"]);
  EXPECT_THAT(std::string(object["refusals"][0]), testing::StartsWith(refusal));

  const Outcome trained = run(work_.path(), "train run.toml --set data.path=text " + crashing, "2>&1 >/dev/null");
  EXPECT_EQ(trained.status, 2);
  EXPECT_THAT(trained.text, testing::StartsWith(refusal));
  const Outcome drawn = run(work_.path(), "schedule run.toml --set data.path=text " + crashing, "2>&1 >/dev/null");
  EXPECT_EQ(drawn.status, 2);
  EXPECT_THAT(drawn.text, testing::StartsWith(refusal));
}

TEST_F(Check, NotesAPluginThatShadowsTheEnginesOwn) {
  std::filesystem::create_directory(work_ / "mine");
  const std::filesystem::path own = TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so", mine = work_ / "mine";
  std::filesystem::copy_file(own, mine / "sched-gpipe.so");
  const std::string set = "--set schedule.plugin=sched-gpipe --set plugins.path=['\"mine\"']";
  const std::string note =
      "schedule.plugin \"sched-gpipe\" is " + (mine / "sched-gpipe.so").string() + ", which shadows " + own.string();
  EXPECT_THAT(check(set, "2>&1").text, HasSubstr("\nnote: " + note + "\n"));
  EXPECT_EQ(nlohmann::json::parse(check(set + " --json", "2>/dev/null").text)["notes"][0], note);
  const Outcome trained = run(work_.path(), "train run.toml --set data.path=text --set train.steps=1 " + set, "2>&1");
  EXPECT_EQ(trained.status, 0) << trained.text;
  EXPECT_THAT(trained.text, HasSubstr(note));
  EXPECT_THAT(trained.text, HasSubstr(", sched-gpipe (mine/sched-gpipe.so), "));
  const Outcome simulated =
      run(work_.path(),
          "simulate run.toml --set data.path=text --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 " + set,
          "2>&1 >/dev/null");
  EXPECT_EQ(simulated.text, "note: " + note + "\n");
}

TEST_F(Check, TellsTheThreadsOfTheKernelSet) {
  const std::string many = "--set kernels.plugin=kernels-cpu --set kernels.threads=65";
  EXPECT_THAT(check(many, "2>&1").text, HasSubstr("= 1 rank, 65 CPU threads"));
  const auto object = nlohmann::json::parse(check(many + " --json", "2>/dev/null").text);
  EXPECT_EQ(object["placement"]["threads_per_rank"], 65);
  EXPECT_THAT(check("", "2>&1").text, HasSubstr("= 1 rank, 1 CPU thread\n")) << "kernels-reference";
}

/// A here-document is a pipe on stdin.
TEST_F(Check, ATomlMayComeThroughAPipe) {
  const std::string toml = "2>&1 <<'END'\n" + read_file(work_ / "run.toml") + "\nEND\n";
  const Outcome told = run(work_.path(), "check /dev/stdin --set data.path=text", toml);
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("# /dev/stdin:4:10\n"));
  EXPECT_THAT(told.text, HasSubstr("/runs/pipe\""));
  EXPECT_THAT(told.text, HasSubstr("\n/dev/stdin: ready to train\n"));

  const std::string times = " --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0";
  EXPECT_EQ(run(work_.path(), "simulate /dev/stdin" + times, toml).status, 0);
  const Outcome trained = run(work_.path(), "train /dev/stdin --set data.path=text --set train.steps=1", toml);
  EXPECT_EQ(trained.status, 0) << trained.text;
  EXPECT_THAT(trained.text, HasSubstr("train runs/pipe/resolved.toml --set train.steps=2 "));
  const Outcome refused =
      run(work_.path(),
          "train /dev/stdin --set data.path=text --set parallel.data=2 --set comm.plugin=comm-lonely --set "
          "plugins.path=[\"'" TRIAX_BINARY_DIR "/tests/train/plugins'\"]",
          toml);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(
      refused.text,
      HasSubstr("/dev/stdin: is standard input or a pipe, and each of the 2 rank processes reads the TOML itself\n"));
}

TEST_F(Check, NotesARunThatEndsInItsWarmUp) {
  const std::string note =
      "lr.warmup_steps = 51 is more than train.steps = 50: the run ends during the warm-up, below optimizer.lr = 0.003";
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

/// "\\u001B" in a TOML file is an escape character, which must not reach the terminal.
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
  const TempFolder work; // its first file would get the closed descriptor
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
