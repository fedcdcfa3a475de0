// SPDX-License-Identifier: Apache-2.0
// triax train with plugins that fail, hang, crash or end the process, in runs whose ranks are threads.
#include <gmock/gmock.h>

#include <csignal>
#include <string>
#include <tuple>

#include "launch/thread_run.hpp"
#include "launch/train_process.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

using TrainFaults = ThreadRun;

/// Arguments of a run with --json in which rank 2 hangs.
std::vector<std::string> hanging_run_arguments(const std::string& where) {
  std::vector<std::string> out = {"train", "run.toml", "--json"};
  for (const std::string& set :
       {std::string("plugins.path=[\"" TEST_PLUGINS "\"]"), std::string("optimizer.plugin=optim-faulty"),
        std::string("optimizer.lr=1e-2"), std::string("optimizer.rank=2"), "optimizer.where=" + where,
        std::string("optimizer.hangs=true")})
    out.insert(out.end(), {"--set", set});
  return out;
}

TEST_F(TrainFaults, OnlyTheFailedRankIsReported) {
  const Outcome failed = train("--set plugins.path=[\\\"" TEST_PLUGINS
                               "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                               "--set optimizer.rank=3 --set optimizer.where=step --set log.level=warn");
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.text,
              HasSubstr(" error rank 3: pipeline 0, data 1, tensor 1, step 2, 0OPT_STEP, in step() of plugin "
                        "\"optim-faulty\": out of luck\n  try again\n"));
  EXPECT_EQ(failed.text.find(" error "), failed.text.rfind(" error ")) << failed.text;
  EXPECT_THAT(read_file(work_ / "run/rank-3.log"), HasSubstr("out of luck"));
  const std::size_t recorded = records(work_ / "run/metrics.jsonl").size();
  EXPECT_TRUE(recorded == 1 || recorded == 2) << recorded; // rank 0 may have completed the step
}

/// The first update makes the weights infinite, so the evaluation after it fails on all ranks.
TEST_F(TrainFaults, AnEvaluationThatFailsDoesNotLoseTheRecordOfItsStep) {
  const Outcome failed = train("--set optimizer.lr=1e30 --set eval.every=1");
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.text, HasSubstr("evaluation"));
  const std::vector<Json> written = records(work_ / "run/metrics.jsonl");
  ASSERT_EQ(written.size(), 1u) << failed.text;
  EXPECT_EQ(written[0]["step"], 1);
  EXPECT_GT(written[0]["loss"].get<double>(), 0);
  EXPECT_FALSE(written[0].contains("eval_loss")) << written[0];
}

/// A thread cannot be killed: the process reports which rank hangs and where, and ends.
TEST_F(TrainFaults, ARankThatHangsInAPluginIsNamedWithTheCall) {
  const std::string path = "--set plugins.path=[\\\"" TEST_PLUGINS "\\\"] --set train.stall_timeout_s=2 ";
  const Outcome hung = train(
      "--set train.stall_timeout_s=2 --set comm.tensor.plugin=comm-faulty --set comm.tensor.inner=comm-local "
      "--set comm.tensor.fault=hang_advance --set comm.tensor.rank=2");
  EXPECT_EQ(hung.status, 1);
  EXPECT_THAT(hung.text,
              testing::ContainsRegex(" error rank 2: pipeline 0, data 1, tensor 0, before its first step[^\n]*: no "
                                     "progress for 2[.0-9]* s: in advance\\(\\) of plugin \"comm-faulty\"\n"));
  EXPECT_THAT(hung.text,
              testing::ContainsRegex(" error rank 0: rank 2 \\(pipeline 0, data 1, tensor 0\\) is stuck before "
                                     "the end of its first step: [^\n]*\n  last position: [^\n]*, in advance\\(\\) of "
                                     "plugin \"comm-faulty\" for [0-9.]+ s\n  rank 0: before its first step"));
  const Json failure = Json::parse(read_file(work_ / "run/failed-start.json"));
  EXPECT_EQ(failure["rank"], 2);
  EXPECT_EQ(failure["stuck"], true);

  const Outcome one = train(path +
                            "--set parallel.data=1 --set parallel.tensor=1 --set optimizer.plugin=optim-faulty "
                            "--set optimizer.lr=1e-2 --set optimizer.rank=0 --set optimizer.where=prepare "
                            "--set optimizer.hangs=true");
  EXPECT_EQ(one.status, 1);
  EXPECT_THAT(one.text,
              testing::ContainsRegex(" error rank 0: starting: no progress for 2[.0-9]* s: in prepare\\(\\) of "
                                     "plugin \"optim-faulty\"\n"));
}

TEST_F(TrainFaults, TheResultOfARunWithAStuckRankIsPrintedToo) {
  const Outcome hung = train("--json --set plugins.path=[\\\"" TEST_PLUGINS
                             "\\\"] --set train.stall_timeout_s=2 --set optimizer.plugin=optim-faulty "
                             "--set optimizer.lr=1e-2 --set optimizer.rank=2 --set optimizer.where=step "
                             "--set optimizer.hangs=true",
                             "2>err.txt");
  EXPECT_EQ(hung.status, 1) << read_file(work_ / "err.txt");
  const Json result = Json::parse(hung.text);
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_EQ(result["exit_status"], 1);
  EXPECT_EQ(result["rank"], 2);
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("in step() of plugin \"optim-faulty\""));
}

TEST_F(TrainFaults, ReportsAPluginThatCallsExit) {
  const Outcome ended = train("--json --set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=2 --set optimizer.where=step --set optimizer.exits=true",
                              "2>err.txt");
  EXPECT_EQ(ended.status, 1) << read_file(work_ / "err.txt");
  const Json result = Json::parse(ended.text);
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_EQ(result["rank"], 2);
  EXPECT_THAT(result["reason"].get<std::string>(),
              AllOf(HasSubstr("the process was ended by exit(): step 2, 0OPT_STEP, "),
                    HasSubstr("in step() of plugin \"optim-faulty\"")));
  EXPECT_THAT(read_file(work_ / "err.txt"),
              AllOf(HasSubstr("  this is a defect of the plugin: report it to its author\n"),
                    HasSubstr("rank 2 (pipeline 0, data 1, tensor 0) failed after step 1")));
}

TEST_F(TrainFaults, NamesPluginAndCallOfAnExceptionOfAnyType) {
  const std::string options = "--set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=0 --set log.level=warn --set optimizer.where=";
  const std::string unknown = "an unknown exception (not derived from std::exception)\n";
  const Outcome planned = train(options + "plan");
  EXPECT_EQ(planned.status, 2);
  EXPECT_THAT(planned.text, HasSubstr("in prepare() of plugin \"optim-faulty\": out of luck\n"));
  EXPECT_THAT(train(options + "traits").text, HasSubstr("optimizer.plugin \"optim-faulty\": traits(): out of luck\n"));
  const Outcome planned_int = train(options + "plan --set optimizer.throws_int=true");
  EXPECT_EQ(planned_int.status, 2);
  EXPECT_THAT(planned_int.text, HasSubstr("in prepare() of plugin \"optim-faulty\": " + unknown));
  const Outcome prepared = train(options + "prepare --set optimizer.throws_int=true");
  EXPECT_EQ(prepared.status, 1);
  EXPECT_THAT(prepared.text, HasSubstr("tensor 0, in prepare() of plugin \"optim-faulty\": " + unknown));
  const Outcome stepped = train(options + "step --set optimizer.throws_int=true");
  EXPECT_EQ(stepped.status, 1);
  EXPECT_THAT(stepped.text, HasSubstr("step 2, 0OPT_STEP, in step() of plugin \"optim-faulty\": " + unknown));
}

TEST_F(TrainFaults, NamesThePluginThatEndsThePreflightProcess) {
  const std::string options = "--set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=0 --set optimizer.where=plan --set optimizer.";
  const std::string call = "optimizer.plugin \"optim-faulty\": prepare() ", file = ", file " TEST_PLUGINS;
  const Outcome left = train(options + "exits_immediately=true --set optimizer.status=7");
  EXPECT_EQ(left.status, 2);
  EXPECT_THAT(left.text, HasSubstr(call + "called exit(7)" + file));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // a sanitizer turns the signal into an exit
  EXPECT_THAT(train(options + "crashes=null").text,
              HasSubstr(call + "crashed with SIGSEGV (Segmentation fault)" + file));
#endif
}

TEST_F(TrainFaults, NamesThePluginThatClosesDescriptorsOfThePreflightProcess) {
  const Outcome closed =
      train("--set plugins.path=[\\\"" TEST_PLUGINS
            "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 --set optimizer.rank=0 "
            "--set optimizer.where=plan --set optimizer.closes=true");
  EXPECT_EQ(closed.status, 2);
  EXPECT_THAT(closed.text, AllOf(HasSubstr("optim-faulty"), HasSubstr("closed file descriptors that it did not open"),
                                 HasSubstr("this is a defect of the plugin")));
}

/// The hang in prepare() imitates a rank that takes a long time to create its weights.
TEST_F(TrainFaults, ASignalDuringTheStartEndsTheRunWithAResultAndNoLock) {
  TrainProcess run(work_.path(), "triax", hanging_run_arguments("prepare"));
  while (run.err().find("starting: 3 of 4 ranks ready, waiting for rank 2 to prepare the first step\n") ==
             std::string::npos &&
         !run.ended())
    ::usleep(5000);
  EXPECT_TRUE(std::filesystem::exists(work_ / "run/metrics.jsonl.lock"));
  send_signal(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  const Json result = Json::parse(run.out());
  EXPECT_EQ(result["outcome"], "stopped");
  EXPECT_EQ(result["signal"], "SIGTERM");
  EXPECT_EQ(result["steps"], 0);
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl.lock"));
}

/// The rank hangs in the middle of a step, so that the first signal has no effect.
TEST_F(TrainFaults, ASecondSignalEndsTheRunWithAResultAndNoLock) {
  TrainProcess run(work_.path(), "triax", hanging_run_arguments("step"));
  while (!run.ended() && (!std::filesystem::exists(work_ / "run/metrics.jsonl") ||
                          std::filesystem::file_size(work_ / "run/metrics.jsonl") == 0))
    ::usleep(5000);
  send_signal(run.pid(), SIGINT);
  while (!run.ended() && run.err().find("a second signal ends the process immediately") == std::string::npos)
    ::usleep(5000);
  EXPECT_TRUE(std::filesystem::exists(work_ / "run/metrics.jsonl.lock"));
  send_signal(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl.lock"));
  const Json result = Json::parse(run.out());
  EXPECT_EQ(result["outcome"], "stopped");
  EXPECT_EQ(result["exit_status"], 128 + SIGTERM);
  EXPECT_EQ(result["signal"], "SIGTERM");
}

TEST_F(TrainFaults, ASignalDuringTheCheckEndsTheRunWithAResult) {
  TrainProcess run(work_.path(), "triax", hanging_run_arguments("plan"));
  while (run.ranks().empty() && !run.ended()) ::usleep(1000); // the child process that runs the preflight
  ::usleep(300'000); // give it time to enter the hanging call; the test also passes without this
  send_signal(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM) << run.err();
  const Json result = Json::parse(run.out());
  EXPECT_EQ(result["outcome"], "stopped");
  EXPECT_EQ(result["exit_status"], 128 + SIGTERM);
  EXPECT_EQ(result["signal"], "SIGTERM");
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl.lock"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // a sanitizer reports the signal itself

TEST_F(TrainFaults, ReportsAPluginThatCrashesAndEndsWithItsSignal) {
  const std::string options = "--json --set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=2 --set optimizer.where=step --set optimizer.crashes=";
  const std::string segv = "SIGSEGV (Segmentation fault)", aborted = "SIGABRT (Aborted)";
  const std::vector<std::tuple<std::string, int, std::string>> cases = {
      {"null", SIGSEGV, segv}, {"stack", SIGSEGV, segv}, {"abort", SIGABRT, aborted}};
  for (const auto& [how, signal, name] : cases) {
    const Outcome ended = train(options + how, "2>err.txt");
    const std::string log = read_file(work_ / "err.txt");
    EXPECT_EQ(ended.status, 128 + signal) << log;
    const std::string reason = "crashed with " + name + ": step 2, 0OPT_STEP, in step() of plugin \"optim-faulty\"";
    const Json result = Json::parse(ended.text);
    EXPECT_EQ(result["outcome"], "failed");
    EXPECT_EQ(result["exit_status"], 128 + signal);
    EXPECT_EQ(result["rank"], 2);
    EXPECT_EQ(result["reason"], reason);
    EXPECT_THAT(
        log, HasSubstr(" error rank 2: " + reason + "\n  this is a defect of the plugin: report it to its author\n"));
    EXPECT_THAT(log, HasSubstr("rank 2 (pipeline 0, data 1, tensor 0) failed after step 1\n"
                               "  last position: step 2, 0OPT_STEP, in step() of plugin \"optim-faulty\"\n"));
    const Json failure = Json::parse(read_file(work_ / "run/failure.json"));
    EXPECT_EQ(failure["rank"], 2);
    EXPECT_EQ(failure["reason"], reason);
  }
}

/// No rank is reported as failed; the library that contains the crashing instruction is named.
TEST_F(TrainFaults, ReportsACrashInANonRankThread) {
  const std::string options = "--json --set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=2 --set optimizer.where=step --set optimizer.crashes=";
  const Outcome aborted = train(options + "thread", "2>err.txt");
  EXPECT_EQ(aborted.status, 128 + SIGABRT);
  EXPECT_THAT(read_file(work_ / "err.txt"),
              testing::ContainsRegex("the process crashed with SIGABRT \\(Aborted\\): in a "
                                     "thread that is not a rank's, in [^ ]*libc\\.so"));
  const Outcome ended = train(options + "thread-null", "2>err.txt");
  EXPECT_EQ(ended.status, 128 + SIGSEGV);
  const std::string log = read_file(work_ / "err.txt");
  const std::string reason =
      "crashed with SIGSEGV (Segmentation fault): in a thread that is not a rank's, in " TEST_PLUGINS
      "/optim-faulty.so";
  EXPECT_THAT(log, HasSubstr(" error rank 0: the process " + reason +
                             "\n  this is a defect of the plugin: report it to its author\n"));
  // Rank 0 may have completed the step.
  EXPECT_THAT(log,
              testing::ContainsRegex("process failed \\(no rank failed\\) after step [12]: crashed with SIGSEGV "));
  EXPECT_EQ(log.find("to pause a run"), std::string::npos);
  const Json result = Json::parse(ended.text), failure = Json::parse(read_file(work_ / "run/failure.json"));
  EXPECT_EQ(failure["failed"], "process");
  for (const Json& file : {result, failure}) {
    EXPECT_TRUE(file["rank"].is_null());
    EXPECT_EQ(file["reason"], reason);
  }
}

#ifdef TRIAX_WITH_UCX
/// UCX installs handlers when it is loaded, and comm-ucx removes them when it is created, on a rank's thread.
TEST_F(TrainFaults, ReportsAPluginThatCrashesWithCommUcxLoaded) {
  const Outcome ended = train("--set plugins.path=[\\\"" TEST_PLUGINS
                              "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                              "--set optimizer.rank=2 --set optimizer.where=step --set optimizer.crashes=null "
                              "--set comm.tensor.plugin=comm-ucx");
  EXPECT_EQ(ended.status, 128 + SIGSEGV) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr(" error rank 2: crashed with SIGSEGV (Segmentation fault): step 2, 0OPT_STEP, "));
}
#endif

#endif

} // namespace
} // namespace triax::test
