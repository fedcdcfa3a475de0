// SPDX-License-Identifier: Apache-2.0
// triax train that is stopped, killed and started again: the records are those of a run that never stopped.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TrainResume : public ProcessRun {
 protected:
  /// Continues, which the runs of other tests do not.
  TrainProcess go(std::vector<std::string> sets) const {
    sets.emplace_back("checkpoint.resume=auto");
    return start(std::move(sets));
  }
  /// By step: loss and norm with all bits.
  std::map<std::int64_t, std::string> records(const std::string& folder) const {
    std::map<std::int64_t, std::string> out;
    std::istringstream lines(read_file(work_ / folder / "metrics.jsonl"));
    std::int64_t last = 0;
    for (std::string line; std::getline(lines, line);) {
      const Json record = Json::parse(line);
      const auto step = record["step"].get<std::int64_t>();
      EXPECT_EQ(step, last + 1) << "a record is missing or there twice";
      last = step;
      out[step] = record["loss"].dump() + " " + record["grad_norm"].dump();
    }
    return out;
  }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(work_ / "run/checkpoints", none))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }
  /// Kills ranks, or the launcher, at random instants of steps and saves of a run with these keys, and continues it.
  /// Its records equal those of a run without the keys that is not killed. TRIAX_KILLS sets the number of kills.
  void expect_to_continue_after_kills(const std::vector<std::string>& more) const {
    const auto go_with = [&](std::vector<std::string> sets) {
      sets.insert(sets.end(), more.begin(), more.end());
      return go(std::move(sets));
    };
    const char* given = std::getenv("TRIAX_KILLS");
    const int kills = given ? std::atoi(given) : 8;
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (int kill = 0; kill < kills; ++kill) {
      std::filesystem::remove(work_ / "run/resolved.toml");
      TrainProcess job = go_with({"train.steps=1000000", "checkpoint.every=1", "launch.start_timeout_s=20"});
      while (!std::filesystem::exists(work_ / "run/resolved.toml") && !job.ended()) ::usleep(2000);
      const auto is_none_complete = [this] { return checkpoints().empty() || checkpoints().back().starts_with('.'); };
      while (kill + 1 == kills && is_none_complete() && !job.ended()) ::usleep(2000); // a busy machine is slow
      ::usleep(random() % 150'000);
      std::vector<pid_t> all = job.ranks();
      all.push_back(job.pid());
      const pid_t victim = all[random() % all.size()];
      send_signal(victim, SIGKILL);
      EXPECT_NE(job.wait(), 2) << job.err(); // what a kill leaves is not refused
      for (const pid_t one : all) EXPECT_TRUE(ends_soon(one));
      for (const std::string& name : checkpoints()) {
        if (!name.starts_with("step-")) continue;
        EXPECT_TRUE(std::filesystem::exists(work_ / "run/checkpoints" / name / "manifest.json")) << name;
      }
    }
    const auto saved = checkpoints();
    ASSERT_FALSE(saved.empty());
    const std::int64_t last = std::stoll(saved.back().substr(5));
    const std::string stop = "train.stop_at=" + std::to_string(last + 2);
    TrainProcess job = go_with({"train.steps=1000000", stop});
    EXPECT_EQ(job.wait(), 0) << job.err();
    for (const std::string& name : checkpoints()) EXPECT_TRUE(name.starts_with("step-")) << name;
    TrainProcess whole = go({"train.steps=1000000", stop, "run.dir=whole"});
    EXPECT_EQ(whole.wait(), 0);
    EXPECT_EQ(records("run"), records("whole"));
  }
  void wait_for_a_step(TrainProcess& job) const {
    while (!has_stepped() && !job.ended()) ::usleep(2000);
  }
};

TEST_F(TrainResume, TheSameCommandContinuesARunThatWasStopped) {
  TrainProcess job = go({"train.steps=4000"});
  wait_for_a_step(job);
  send_signal(job.pid(), SIGUSR1);
  ASSERT_EQ(job.wait(), 75) << job.err();
  const auto stopped = static_cast<int>(records("run").size());
  TrainProcess next = go({"train.steps=4000", "train.stop_at=" + std::to_string(stopped + 5)});
  EXPECT_EQ(next.wait(), 0) << next.err();
  EXPECT_THAT(next.err(), ContainsRegex(" info launcher: continues after step " + std::to_string(stopped) +
                                        " from [^\n]*/checkpoints/step-[0-9]+\n"));
  EXPECT_THAT(next.out(), HasSubstr("trained 5 steps: "));
  EXPECT_THAT(next.err(), HasSubstr("\nnext: to continue: "));
  EXPECT_EQ(checkpoints().size(), 2u);
  TrainProcess whole = go({"train.steps=4000", "train.stop_at=" + std::to_string(stopped + 5), "run.dir=whole"});
  EXPECT_EQ(whole.wait(), 0);
  EXPECT_EQ(records("run"), records("whole"));
}

TEST_F(TrainResume, ACompleteRunSaysSoAndFreshBeginsAnew) {
  ASSERT_EQ(go({"train.steps=2"}).wait(), 0);
  TrainProcess again = go({"train.steps=2"});
  EXPECT_EQ(again.wait(), 0);
  EXPECT_EQ(again.out(), "complete: step 2 of 2 is done, saved in run/checkpoints/step-00000002; nothing to train\n");
  EXPECT_THAT(
      again.err(),
      ContainsRegex(
          "\nnext: to train longer, from this step: [^\n]* --set train.steps=4 --set checkpoint.resume=auto\n"));
  TrainProcess fresh(work_.path(), "triax", {"train", "run.toml", "--fresh", "--set", "train.steps=3"});
  EXPECT_EQ(fresh.wait(), 0) << fresh.err();
  EXPECT_THAT(fresh.err(), HasSubstr("metrics.jsonl to metrics-1.jsonl, checkpoints to checkpoints-1"));
  EXPECT_EQ(records("run").size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(work_ / "run/checkpoints-1/step-00000002/manifest.json"));
}

/// As torchrun does it after the loss of a machine.
TEST_F(TrainResume, UnderALauncherItContinuesWithFewerRanks) {
  for (const int world : {4, 2}) {
    const int port = free_port();
    std::vector<std::string> sets = {"parallel.pipeline=1", "parallel.tensor=1", "checkpoint.resume=auto"};
    sets.push_back(world == 4 ? "train.stop_at=3" : "train.stop_at=5");
    std::vector<TrainProcess> ranks;
    for (int rank = 0; rank < world; ++rank)
      ranks.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, world, port)));
    for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
    if (world == 4) continue;
    EXPECT_THAT(ranks[0].err(),
                ContainsRegex("continues after step 3 from [^;]*; changed: parallel.data = 2 \\(was 4\\)"));
  }
  EXPECT_EQ(records("run").size(), 5u);
}

TEST_F(TrainResume, ARunThatOnlyModelsTimeSavesNothing) {
  TrainProcess job = go({"kernels.plugin=kernels-sim", "train.steps=2", "checkpoint.every=1"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("kernels-sim does not compute"));
  EXPECT_TRUE(checkpoints().empty());
}

TEST_F(TrainResume, ATimeLimitEndsTheRunInTimeWithACheckpoint) {
  TrainProcess job = go({"train.steps=1000000", "train.time_limit=3s"});
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_THAT(job.err(), ContainsRegex("\nstopped by train.time_limit after step [0-9]+ of 1000000; saved in "));
}

TEST_F(TrainResume, KilledAtAnyInstantItContinuesFromACompleteCheckpoint) {
  expect_to_continue_after_kills({});
}

/// The file of the state disappears with its process; a kill before its name is removed leaves an empty one. The whole
/// run has its state in memory, and the same bits.
TEST_F(TrainResume, KilledAtAnyInstantWithItsStateOnADiskItContinues) {
  expect_to_continue_after_kills({"memory.offload=disk", "memory.offload_buffer_bytes=4096"});
  for (const auto& entry : std::filesystem::directory_iterator(work_ / "run")) {
    if (!entry.path().filename().string().starts_with(".offload")) continue;
    EXPECT_EQ(std::filesystem::file_size(entry.path()), 0u) << entry.path();
  }
}

TEST_F(TrainResume, AnotherModelIsRefusedWithTheKey) {
  ASSERT_EQ(go({"train.steps=1"}).wait(), 0);
  TrainProcess other = go({"train.steps=2", "model.hidden=32"});
  EXPECT_EQ(other.wait(), 2);
  EXPECT_THAT(other.err(), HasSubstr("--set: cannot continue from "));
  EXPECT_THAT(other.err(),
              HasSubstr(": parameter \"embedding/tokens.weight\" has shape [257, 16] in the checkpoint and "
                        "[257, 32] in this run. Changed: model.hidden = 32 (was 16)\n"));
}

} // namespace
} // namespace triax::test
