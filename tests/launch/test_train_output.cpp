// SPDX-License-Identifier: Apache-2.0
// triax train with ranks as threads: what plugins print and how they end does not change the result, two runs do not
// share a metrics file, and a run whose operations take hours can be stopped.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class TrainOutput : public ProcessRun {
 protected:
  /// With `flags` before the overrides.
  TrainProcess start_threads(std::vector<std::string> flags, std::vector<std::string> sets) const {
    std::vector<std::string> arguments = {"train", "run.toml"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    sets.insert(sets.begin(), "comm.plugin=comm-local");
    for (std::string& set : sets) {
      arguments.emplace_back("--set");
      arguments.push_back(std::move(set));
    }
    return {work_.path(), "triax", arguments};
  }
  /// optim-faulty without a fault, but with this option.
  static std::vector<std::string> with_option(const std::string& option) {
    return {"plugins.path=[\"" TEST_PLUGINS "\"]",
            "optimizer.plugin=optim-faulty",
            "optimizer.lr=1e-2",
            "optimizer.rank=1000",
            "optimizer.where=step",
            option,
            "train.steps=2"};
  }
};

TEST_F(TrainOutput, KeepsOutputOfPluginsOutOfTheJsonObject) {
  TrainProcess run = start_threads({"--json"}, with_option("optimizer.prints=true"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(Json::parse(run.out())["outcome"], "trained") << run.out();
  EXPECT_THAT(run.err(), HasSubstr("printf of a plugin"));
  EXPECT_THAT(run.err(), HasSubstr("cout of a plugin"));
}

TEST_F(TrainOutput, AStaticDestructorOfAPluginIsNotRun) {
  TrainProcess run = start_threads({}, with_option("optimizer.aborts=true"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("trained 2 steps: "));
}

TEST_F(TrainOutput, AMetricsFileOfAnotherRunIsRefused) {
  const auto metrics = work_ / "all.jsonl";
  {
    TrainProcess first = start_threads({}, {"log.metrics=all.jsonl", "train.steps=1000000"});
    std::error_code none;
    while (!first.ended() && (std::filesystem::file_size(metrics, none) == 0 || none)) ::usleep(5000);
    ASSERT_FALSE(first.ended()) << first.err();
    const Outcome second = run(work_.path(),
                               "train run.toml --set comm.plugin=comm-local --set run.dir=second --set "
                               "log.metrics=all.jsonl",
                               "2>&1");
    EXPECT_EQ(second.status, 2);
    EXPECT_THAT(second.text, EndsWith("/all.jsonl: another run is writing this metrics file\n"
                                      "  wait until it has ended, or choose another file with log.metrics\n"));
    EXPECT_FALSE(std::filesystem::exists(work_ / "second/metrics-1.jsonl"));
  } // killed: its lock file remains, and has no effect
  TrainProcess third = start_threads({}, {"log.metrics=all.jsonl", "train.steps=1", "run.dir=third"});
  EXPECT_EQ(third.wait(), 0) << third.err();
  EXPECT_FALSE(std::filesystem::exists(work_ / "all.jsonl.lock"));
}

TEST_F(TrainOutput, ASignalEndsAnOperationOfTheFirstStep) {
  TrainProcess run = start_threads({"--json"}, {"kernels.plugin=kernels-sim", "kernels.op_us=1e9"});
  while (!run.ended() && !std::filesystem::exists(work_ / "run/resolved.toml")) ::usleep(5000); // the loop has begun
  ASSERT_FALSE(run.ended()) << run.err();
  send_signal(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  EXPECT_EQ(Json::parse(run.out())["outcome"], "stopped");
  EXPECT_EQ(Json::parse(run.out())["steps"], 0);
  EXPECT_THAT(run.err(), HasSubstr("stopped by SIGTERM before the first step ended\n"));
}

/// A pass takes longer than any wait may last; each of its operations is short.
TEST_F(TrainOutput, ProcessesWaitForAPassThatTakesLongerThanTheStallTimeout) {
  TrainProcess run = start({"kernels.plugin=kernels-sim", "kernels.op_us=150000", "parallel.tensor=1", "batch.global=1",
                            "train.steps=1", "train.stall_timeout_s=1"});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("ran 1 step: "));
}

TEST_F(TrainOutput, ProcessesThatAllWaitAreReported) {
  TrainProcess run =
      start({"comm.plugin=comm-faulty", "comm.inner=comm-ucx", "comm.fault=drop", "train.stall_timeout_s=1"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.err(),
              ContainsRegex(" error launcher: rank [0-3] \\([^\n]*\\) is stuck before the end of its first step: all "
                            "ranks wait, but none makes progress; this one has waited for [0-9.]+ s\n"));
}

TEST_F(TrainOutput, OfManyErrorsTheFirstAreShown) {
  std::vector<std::string> sets;
  for (int i = 0; i < 30; ++i) sets.push_back("model.unknown_" + std::to_string(i) + "=1");
  TrainProcess run = start_threads({"--json"}, sets);
  EXPECT_EQ(run.wait(), 2);
  const Json result = Json::parse(run.out());
  EXPECT_EQ(result["errors"].size(), 20u);
  EXPECT_EQ(result["more_errors"], 10);
  EXPECT_THAT(run.err(), EndsWith("\n... and 10 more errors\n"));
}

TEST_F(TrainOutput, ReportsMissingResourcesOfTheShell) {
  const std::string triax = "'" TRIAX_BINARY_DIR "/bin/triax' ", folder = "cd '" + work_.path().string() + "' && ";
  for (const char* verb : {"check run.toml", "train run.toml", "plugins list", "simulate run.toml"}) {
    const Outcome files = run_command(folder + "exec 2>&1; ulimit -n 12; exec " + triax + verb);
    EXPECT_EQ(files.status, 2);
    EXPECT_EQ(files.text,
              "the limit on open files is 12, but triax needs at least 64\n"
              "  ask the administrator to raise the hard limit (ulimit -Hn) to at least 64\n");
    const Outcome stack = run_command(folder + "exec 2>&1; ulimit -s 512; exec " + triax + verb);
    EXPECT_EQ(stack.status, 2);
    EXPECT_EQ(stack.text,
              "the limit on the stack size is 512 KiB, but triax needs at least 1024 KiB\n"
              "  ask the administrator to raise the hard limit (ulimit -Hs) to at least 1024\n");
  }
  const Outcome raised = run_command(folder + "exec 2>&1; ulimit -S -s 512; exec " + triax + "train run.toml");
  EXPECT_EQ(raised.status, 0) << raised.text;
  const Outcome gone = run_command(folder + "mkdir gone && cd gone && rmdir ../gone && " + triax + "check x 2>&1");
  EXPECT_EQ(gone.status, 2);
  EXPECT_EQ(gone.text,
            "the working folder cannot be found: No such file or directory\n"
            "  it was deleted or moved; change to a folder that exists (cd)\n");
}

/// A pipe that is full for the whole run, as of a launcher that is stopped.
TEST_F(TrainOutput, AStderrThatNobodyReadsNeitherStopsTheRunNorLosesItsRecords) {
  const std::string pipe = (work_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int filled = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(filled, 0);
  for (const std::string& bytes : {std::string(4096, 'x'), std::string("x")})
    while (::write(filled, bytes.data(), bytes.size()) > 0) continue;
  for (const char* comm : {"comm-local", "comm-ucx"}) {
    const std::string keys = text("--set comm.plugin={} --set run.dir={} --set checkpoint.every=4 ", comm, comm);
    const Outcome run =
        run_command("cd '" + work_.path().string() +
                    "' && timeout -s KILL 300 '" TRIAX_BINARY_DIR "/bin/triax' train run.toml " + keys + "2> pipe");
    EXPECT_EQ(run.status, 0);
    EXPECT_THAT(run.text, HasSubstr("trained 10 steps"));
    EXPECT_EQ(losses(comm).size(), 10u);
    EXPECT_TRUE(std::filesystem::exists(work_ / comm / "checkpoints/step-00000010/manifest.json"));
  }
  EXPECT_EQ(losses("comm-local"), losses("comm-ucx"));
  ::close(filled);
}

TEST_F(TrainOutput, ASmallSharedMemoryIsNamed) {
  const std::string mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm";
  if (run_command("unshare -m bash -c '" + mount + "' 2>&1").status != 0)
    GTEST_SKIP() << "this user may not mount a file system";
  const Outcome run = run_command("cd '" + work_.path().string() + "' && unshare -m bash -c \"" + mount +
                                  " && '" TRIAX_BINARY_DIR "/bin/triax' train run.toml 2>&1\"");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.text, ContainsRegex("comm-ucx: UCX: [^\n]*; /dev/shm has [01] of 1 MiB free\n"
                                      "rank [0-3]:   enlarge /dev/shm \\("));
}

} // namespace
} // namespace triax::test
