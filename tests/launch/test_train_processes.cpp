// SPDX-License-Identifier: Apache-2.0
// triax train with ranks as processes, over comm-ucx: results, signals, and runs that do not start.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/process_run.hpp"
#include "os/signal_name.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using TrainProcesses = ProcessRun;

TEST_F(TrainProcesses, LearnTheSameBitsAsThreads) {
  TrainProcess four = start();
  EXPECT_EQ(four.wait(), 0) << four.err();
  EXPECT_THAT(four.out(), MatchesRegex("trained 10 steps: loss [^\n]*metrics in run/metrics.jsonl\n"));
  EXPECT_THAT(four.err(), HasSubstr("comm-ucx; 4 ranks as processes, "));
  EXPECT_THAT(four.err(), HasSubstr("sent between ranks, sum over all ranks:\n"
                                    "  tensor    comm-ucx  "));
  EXPECT_THAT(four.err(), HasSubstr("\n  pipeline  comm-ucx  "));
  EXPECT_THAT(four.err(), Not(HasSubstr("rank 1: ")));
  TrainProcess threads = start({"comm.plugin=comm-local", "run.dir=threads"});
  EXPECT_EQ(threads.wait(), 0) << threads.err();
  EXPECT_THAT(threads.err(), HasSubstr("comm-local; 4 ranks as threads of this process, "));
  EXPECT_EQ(losses("run"), losses("threads"));
  // The reported traffic is also the same.
  const auto moved = [](std::string text) {
    text = text.substr(text.find("sent between"));
    text = text.substr(0, text.find("next:"));
    for (std::size_t at = 0; (at = text.find("comm-local")) != std::string::npos;) text.replace(at, 10, "comm-ucx");
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  EXPECT_EQ(moved(four.err()), moved(threads.err()));
}

/// Boundaries are sent in two parts and gathered: fewer bytes on the pipeline axis, the same bits.
TEST_F(TrainProcesses, LearnTheSameBitsWhereBoundariesAreScattered) {
  TrainProcess whole = start({"train.steps=3"});
  EXPECT_EQ(whole.wait(), 0) << whole.err();
  TrainProcess scattered = start({"train.steps=3", "parallel.scatter_gather=true", "run.dir=scattered"});
  EXPECT_EQ(scattered.wait(), 0) << scattered.err();
  EXPECT_EQ(losses("run"), losses("scattered"));
  const auto bytes = [this](const char* folder, const char* group) {
    std::istringstream lines(read_file(work_ / folder / "metrics.jsonl"));
    std::string line;
    std::getline(lines, line);
    return Json::parse(line)["comm"][group]["bytes_out"].get<std::int64_t>();
  };
  EXPECT_LT(bytes("scattered", "pipeline"), bytes("run", "pipeline"));
  EXPECT_GT(bytes("scattered", "tensor"), bytes("run", "tensor"));
}

TEST_F(TrainProcesses, LearnTheSameBitsWhereDataRanksDivideTheOptimizer) {
  for (const char* shard : {"none", "states", "gradients"}) {
    TrainProcess run = start({"train.steps=3", "parallel.tensor=1", "parallel.data=2",
                              text("optimizer.shard={}", shard), text("run.dir={}", shard)});
    EXPECT_EQ(run.wait(), 0) << run.err();
    EXPECT_EQ(losses(shard), losses("none")) << shard;
  }
}

TEST_F(TrainProcesses, AreThreadsWhereOneAxisNeedsThat) {
  TrainProcess mixed = start({"comm.tensor.plugin=comm-local", "train.steps=3"});
  EXPECT_EQ(mixed.wait(), 0) << mixed.err();
  EXPECT_THAT(mixed.err(), HasSubstr("comm-local comm-ucx; 4 ranks as threads of this process, "));
  EXPECT_THAT(mixed.err(), HasSubstr("\n  tensor    comm-local  "));
  EXPECT_THAT(mixed.err(), HasSubstr("\n  pipeline  comm-ucx    "));
}

TEST_F(TrainProcesses, GoWithTheirLauncher) {
  TrainProcess job = start_endless_run();
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u) << job.err();
  send_signal(job.pid(), SIGKILL);
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  for (const pid_t rank : ranks)
    while (alive(rank)) ::usleep(5000);
}

TEST_F(TrainProcesses, UnderNohupTheEndOfTheTerminalIsIgnored) {
  std::signal(SIGHUP, SIG_IGN); // inherited by child processes, as with nohup
  TrainProcess job = start_endless_run();
  std::signal(SIGHUP, SIG_DFL);
  for (const pid_t rank : job.ranks()) send_signal(rank, SIGHUP);
  send_signal(job.pid(), SIGHUP);
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75);
  EXPECT_THAT(job.err(), HasSubstr("stopped by SIGTERM after step "));
  EXPECT_THAT(job.err(), Not(HasSubstr("SIGHUP")));
}

TEST_F(TrainProcesses, VariablesThatNothingReadsAreReportedOnce) {
  ::setenv("UCX_TLSS", "tcp", 1);
  ::setenv("TRIAX_JOB_TOKNE", "secret", 1);
  TrainProcess job = start();
  ::unsetenv("UCX_TLSS");
  ::unsetenv("TRIAX_JOB_TOKNE");
  EXPECT_EQ(job.wait(), 0) << job.err();
  for (const std::string once : {"UCX_TLSS", "TRIAX_JOB_TOKNE"}) {
    const std::string all = job.err();
    EXPECT_NE(all.find(once), std::string::npos) << all;
    EXPECT_EQ(all.find(once), all.rfind(once)) << all;
  }
  EXPECT_THAT(job.err(), HasSubstr(" warning: comm-ucx: unknown UCX environment variables: UCX_TLSS"));
  EXPECT_THAT(job.err(), HasSubstr("note: TRIAX_JOB_TOKNE is set, but Triax does not read it; did you mean "
                                   "TRIAX_JOB_TOKEN?\n"));
}

TEST_F(TrainProcesses, SigquitEndsThemAtOnceAndIsLogged) {
  rlimit before{};
  ::getrlimit(RLIMIT_CORE, &before);
  const rlimit none{0, before.rlim_max}; // prevents a core file
  ::setrlimit(RLIMIT_CORE, &none);
  TrainProcess job = start_endless_run();
  ::setrlimit(RLIMIT_CORE, &before);
  const std::vector<pid_t> ranks = job.ranks();
  send_signal(job.pid(), SIGQUIT);
  EXPECT_EQ(job.wait(), 128 + SIGQUIT);
  for (const pid_t rank : ranks)
    while (alive(rank)) ::usleep(5000);
  EXPECT_THAT(job.err(), HasSubstr(" info launcher: SIGQUIT: ending immediately\n"));
  EXPECT_THAT(read_file(work_ / "run/launcher.log"), HasSubstr("SIGQUIT: ending immediately\n"));
}

TEST_F(TrainProcesses, ContinueAfterAllWereStopped) {
  TrainProcess job = start_endless_run({"train.stall_timeout_s=1"});
  std::vector<pid_t> all = job.ranks();
  ASSERT_EQ(all.size(), 4u) << job.err();
  all.push_back(job.pid());
  for (int turn = 0; turn < 3; ++turn) { // as with Ctrl-Z and fg
    for (const pid_t one : all) send_signal(one, SIGSTOP);
    ::usleep(turn == 2 ? 2'500'000 : 1'200'000);
    const auto before = std::filesystem::file_size(work_ / "run/metrics.jsonl");
    for (const pid_t one : all) send_signal(one, SIGCONT);
    while (std::filesystem::file_size(work_ / "run/metrics.jsonl") <= before && !job.ended()) ::usleep(5000);
    ASSERT_FALSE(job.ended()) << job.err();
  }
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75) << job.err();
}

TEST_F(TrainProcesses, AnInterruptedRunEndsAfterAStepOfAllRanks) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    TrainProcess job = start_endless_run();
    send_signal(job.pid(), signal);
    EXPECT_EQ(job.wait(), 75);
    const std::string steps = std::to_string(losses("run").size());
    EXPECT_THAT(job.err(), ContainsRegex("stopped by " + signal_name(signal) + " after step " + steps +
                                         " of 1000000; saved in run/checkpoints/step-0*" + steps +
                                         "; metrics in run/metrics.jsonl\nnext: to continue: [^\n]*triax train "
                                         "run.toml --set train.steps=1000000 --set "
                                         "checkpoint.resume=auto\n"));
  }
}

TEST_F(TrainProcesses, ASignalToAllOfThemIsOneWish) {
  TrainProcess job = start_endless_run(); // as with Ctrl-C in a terminal
  for (const pid_t rank : job.ranks()) send_signal(rank, SIGINT);
  send_signal(job.pid(), SIGINT);
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("stopped by SIGINT after step "));
  EXPECT_THAT(job.err(), Not(HasSubstr("this launcher did not")));
}

TEST_F(TrainProcesses, ASignalToOneOfThemStopsAllAndNamesIt) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    TrainProcess job = start_endless_run();
    ASSERT_EQ(job.ranks().size(), 4u) << job.err();
    send_signal(job.ranks()[2], signal);
    EXPECT_EQ(job.wait(), 75) << job.err();
    const std::string name = signal_name(signal);
    EXPECT_THAT(job.err(), HasSubstr("stopped by " + name + " after step "));
    const std::string received =
        "rank 2 received " + name + ", but this launcher did not: all ranks stop at the end of a step\n";
    EXPECT_THAT(job.err(), HasSubstr(" info launcher: " + received));
    EXPECT_THAT(read_file(work_ / "run/launcher.log"), HasSubstr(received));
    EXPECT_THAT(
        read_file(work_ / "run/rank-2.log"),
        HasSubstr(" info rank 2: " + name + ": received by this process; all ranks stop at the end of a step\n"));
    EXPECT_THAT(read_file(work_ / "run/rank-1.log"), Not(HasSubstr(name)));
  }
}

TEST_F(TrainProcesses, ASignalBeforeTheFirstStepEndsThemAtOnce) {
  for (int moment = 0; moment < 5; ++moment) {
    TrainProcess job = start({"train.steps=1000000"});
    ::usleep(static_cast<useconds_t>(moment) * 40'000);
    const std::vector<pid_t> ranks = job.ranks();
    for (const pid_t rank : ranks) send_signal(rank, SIGINT); // as a terminal does
    send_signal(job.pid(), SIGINT);
    EXPECT_THAT(job.wait(), AnyOf(128 + SIGINT, 75)) << job.err(); // 75: the first step had ended
    for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));   // the first signals end the launcher by default
  }
}

/// The launcher is stopped before the first step ends, so it learns of the step and of the signal together.
TEST_F(TrainProcesses, AFirstStepThatEndsWithASignalIsReported) {
  for (int turn = 0; turn < 4; ++turn) {
    std::filesystem::remove(work_ / "run/metrics.jsonl");
    TrainProcess job = start({"train.steps=1000000", "kernels.plugin=kernels-sim", "kernels.op_us=2000"});
    while (!std::filesystem::exists(work_ / "run/metrics.jsonl") && !job.ended()) ::usleep(1000);
    send_signal(job.pid(), SIGSTOP);
    while (!has_stepped() && !job.ended()) ::usleep(5000);
    send_signal(job.pid(), SIGTERM);
    send_signal(job.pid(), SIGCONT);
    EXPECT_EQ(job.wait(), 128 + SIGTERM) << "nothing is saved without arithmetic";
    EXPECT_THAT(job.err(), HasSubstr("stopped by SIGTERM after step "));
  }
}

TEST_F(TrainProcesses, RefuseARunThatIsNotAFile) {
  TrainProcess job(work_.path(), "triax", {"train", "/dev/stdin"});
  EXPECT_EQ(job.wait(), 2);
}

TEST_F(TrainProcesses, RefuseInvalidLaunchKeysBeforeTheStart) {
  const std::string sets = " run.toml --set launch.interface=eth77 --set launch.token_file=nowhere";
  const Outcome checked = run(work_.path(), "check" + sets, "2>&1 >/dev/null");
  EXPECT_EQ(checked.status, 2);
  EXPECT_THAT(checked.text,
              HasSubstr("--set: launch.interface: \"eth77\" is not a network interface of this machine, "));
  EXPECT_THAT(checked.text, HasSubstr("/nowhere: does not exist\n"));
  const Outcome trained = run(work_.path(), "train" + sets, "2>&1");
  EXPECT_EQ(trained.status, 2);
  EXPECT_EQ(trained.text, checked.text);
  EXPECT_FALSE(std::filesystem::exists(work_ / "run"));
  EXPECT_EQ(run(work_.path(), "check --no-device" + sets, "2>&1").status, 0);
  const std::string threads = " --set comm.plugin=comm-local"; // threads do not use [launch]
  EXPECT_EQ(run(work_.path(), "check" + sets + threads, "2>&1").status, 0);
}

/// Files by name, without the logs, which every run continues; folders without their content.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() != ".log")
      out[entry.path().filename()] = entry.is_directory() ? "" : read_file(entry.path());
  return out;
}

TEST_F(TrainProcesses, ARunThatDoesNotStartChangesNoFileOfAnEarlierOne) {
  ASSERT_EQ(start({"train.steps=3"}).wait(), 0);
  write_file(work_ / "run/failure.json", "of an earlier run\n");
  const auto before = files_of(work_ / "run");
  ASSERT_EQ(before.size(), 5u) << "memory, metrics, resolved.toml, failure, checkpoints";
  const TakenPort taken;
  EXPECT_EQ(start({"launch.port=" + std::to_string(taken.port())}).wait(), 2);
  EXPECT_EQ(files_of(work_ / "run"), before);
  EXPECT_EQ(start({}, "triax", {"UCX_TLS=nothing"}).wait(), 2);
  EXPECT_EQ(files_of(work_ / "run"), before);
  EXPECT_EQ(start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                   "optimizer.rank=3", "optimizer.where=prepare"})
                .wait(),
            1);
  auto after = files_of(work_ / "run");
  EXPECT_EQ(after.erase("failed-start.json"), 1u);
  EXPECT_EQ(after, before);
  EXPECT_EQ(start({"launch.start_timeout_s=1"}, "rank-0", variables(0, 4, free_port())).wait(), 1);
  after = files_of(work_ / "run");
  after.erase("failed-start.json");
  EXPECT_EQ(after, before);

  TrainProcess next = start({"train.steps=2"});
  EXPECT_EQ(next.wait(), 0) << next.err();
  EXPECT_THAT(next.err(), HasSubstr(" info launcher: "));
  EXPECT_THAT(next.err(), HasSubstr("run: files of the earlier run were moved: metrics.jsonl to metrics-1.jsonl, "
                                    "failure.json to failure-1.json, checkpoints to checkpoints-1, resolved.toml to "
                                    "resolved-1.toml\n"));
  after = files_of(work_ / "run");
  EXPECT_EQ(after.size(), 8u);
  EXPECT_EQ(after["metrics-1.jsonl"], before.at("metrics.jsonl"));
  EXPECT_EQ(after["resolved-1.toml"], before.at("resolved.toml"));
}

TEST_F(TrainProcesses, WriteUcxsLogToTheFileOfTheUser) {
  const std::filesystem::path log = work_ / "ucx.log";
  EXPECT_EQ(start({}, "triax", {"UCX_TLS=nothing", "UCX_LOG_FILE=" + log.string()}).wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("nothing"));
}

TEST_F(TrainProcesses, ADeletedFolderIsReportedWhenItHappensAndAtTheEnd) {
  TrainProcess job = start_endless_run();
  std::filesystem::remove_all(work_ / "run");
  while (job.err().find("metrics.jsonl: was deleted during the run") == std::string::npos && !job.ended())
    ::usleep(5000);
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75); // a save makes the folder again; a later record of rank 0 is then in it
  EXPECT_THAT(job.err(), ContainsRegex("\nstopped by SIGTERM after step [0-9]+ of 1000000; saved in [^;]*; "
                                       "(no metrics|metrics in [^;]*); missing: [0-9]+ of "));
}

TEST_F(TrainProcesses, RecordsThatRank0CannotWriteMakeTheExitStatus1) {
  TrainProcess job(work_.path(), "triax",
                   {"train", "run.toml", "--json", "--set", "train.steps=3", "--set", "log.metrics=/dev/full"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("rank 0: "));
  EXPECT_THAT(job.err(), HasSubstr("/dev/full: the record of step 1 cannot be written: No space left on device\n"));
  const Json result = Json::parse(job.out());
  EXPECT_EQ(result["outcome"], "trained");
  EXPECT_EQ(result["missing"]["records"], 3);
  EXPECT_EQ(result["records"], 3);
}

TEST_F(TrainProcesses, APortInUseIsRefused) {
  const TakenPort taken;
  TrainProcess job = start({"launch.port=" + std::to_string(taken.port())});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr(std::to_string(taken.port())));
  EXPECT_THAT(job.err(), HasSubstr("in use"));
  EXPECT_THAT(job.err(), HasSubstr("launch.port"));
}

} // namespace
} // namespace triax::test
