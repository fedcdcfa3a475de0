// SPDX-License-Identifier: Apache-2.0
// triax compare, as users run it: what it measures and proves, and what happens to its processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "launch/thread_run.hpp"
#include "launch/train_process.hpp"
#include "os/local_socket.hpp"
#include "report/turn_messages.hpp"
#include "train/turns.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class Compare : public ThreadRun {
 protected:
  /// A comparison with few steps. Fails the test if it does not end well.
  Json compare(const std::string& arguments) const {
    const Outcome out = run(
        work_.path(), "compare run.toml --rounds 4 --turn-ms 0 --json --set train.steps=60 " + arguments, "2>err.txt");
    EXPECT_EQ(out.status, 0) << out.text << read_file(work_ / "err.txt");
    Json result = Json::parse(out.text, nullptr, false);
    EXPECT_TRUE(result.is_object()) << out.text;
    return result;
  }
  TrainProcess start(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {"compare",   "run.toml", "--rounds", "10000",
                                          "--turn-ms", "0",        "--set",    "train.steps=1000000"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return {work_.path(), "compare", arguments};
  }
  /// Waits until both sides have trained.
  void await_turns(TrainProcess& comparison) const {
    const auto has_records = [this](const char* side) {
      std::error_code none;
      return std::filesystem::file_size(work_ / "runs/run-compare" / side / "metrics.jsonl", none) > 2000 && !none;
    };
    while (!(has_records("a") && has_records("b")) && !comparison.ended()) ::usleep(5000);
  }
};

TEST_F(Compare, SchedulesHaveTheSameBitsAndTheirOwnTraffic) {
  const Json out = compare("--set parallel.pipeline=2 --set parallel.tensor=1 --b schedule.plugin=sched-1f1b");
  EXPECT_TRUE(out["losses"]["bit_equal"]) << out["losses"];
  EXPECT_TRUE(out["grad_norms"]["bit_equal"]);
  EXPECT_EQ(out["losses"]["steps"], 3 + 8 * (out["measured_steps_per_turn"].get<int>() + 2));
  EXPECT_EQ(out["differences"],
            Json::parse(R"([{"key":"schedule.plugin","a":"\"sched-gpipe\"","b":"\"sched-1f1b\""}])"));
  EXPECT_EQ(out["step_time"]["rounds"], 4);
  EXPECT_EQ(out["a"]["turns"].size(), 8u);
  EXPECT_EQ(out["b"]["turns"].size(), 8u);
  EXPECT_EQ(out["a"]["tokens_per_step"], 8 * 8);
  EXPECT_GT(out["a"]["resident_bytes"], 1 << 20);
  EXPECT_GT(out["a"]["memory_bytes"], 1000);
  std::set<std::string> parts;
  for (const Json& part : out["parts"]) parts.insert(part["part"]);
  EXPECT_THAT(parts,
              testing::IsSupersetOf({"step", "forward", "backward", "exposed pipeline", "exposed data", "optimizer"}));
  // Its records are those of the run itself.
  const Outcome alone =
      train("--set parallel.pipeline=2 --set parallel.tensor=1 --set train.steps=60 --set eval.every=0");
  ASSERT_EQ(alone.status, 0) << alone.text;
  const std::vector<Json> of_run = records(work_ / "run/metrics.jsonl"),
                          of_side = records(work_ / "runs/run-compare/b/metrics.jsonl");
  ASSERT_GE(of_side.size(), 40u);
  for (std::size_t step = 0; step < of_side.size(); ++step) {
    EXPECT_EQ(of_side[step]["loss"], of_run[step]["loss"]) << step;
    EXPECT_EQ(of_side[step]["grad_norm"], of_run[step]["grad_norm"]) << step;
  }
  for (const char* side : {"a", "b"}) {
    const Json& traffic = out[side]["traffic"];
    const auto data = std::ranges::find_if(traffic, [](const Json& one) { return one["axis"] == "data"; });
    ASSERT_NE(data, traffic.end());
    EXPECT_EQ((*data)["plugin"], "comm-local");
    const std::uint64_t of_rank_0 = of_run[5]["comm"]["data"]["bytes_out"];
    EXPECT_GT((*data)["bytes_out"], 3 * of_rank_0) << "four ranks send about the same";
  }
  EXPECT_EQ(Json::parse(read_file(work_ / "runs/run-compare/compare.json")), out);
  EXPECT_FALSE(std::filesystem::exists(work_ / "runs/run-compare/a/checkpoints")) << "nothing is saved";
}

#ifdef TRIAX_WITH_UCX
TEST_F(Compare, RanksMayBeProcesses) {
  const Json out = compare(
      "--set parallel.pipeline=2 --set parallel.tensor=1 --set comm.plugin=comm-ucx --b schedule.plugin=sched-1f1b");
  EXPECT_TRUE(out["losses"]["bit_equal"]) << out["losses"];
  const Json one = compare("--set parallel.pipeline=2 --set parallel.tensor=1 --b schedule.plugin=sched-1f1b");
  EXPECT_GT(out["a"]["resident_bytes"], 2 * one["a"]["resident_bytes"].get<double>()) << "of four processes";
  EXPECT_TRUE(one["losses"]["bit_equal"]);
}
#endif

/// A side continues after the step of its checkpoint, and needs the steps that are left.
TEST_F(Compare, SidesMayBeginWithACheckpoint) {
  ASSERT_EQ(train("--set train.steps=60 --set train.stop_at=20").status, 0);
  const std::string from = "--set checkpoint.from=run/checkpoints/step-00000020 --b kernels.plugin=kernels-cpu ";
  const Json out = compare(from);
  EXPECT_EQ(records(work_ / "runs/run-compare/a/metrics.jsonl").front()["step"], 21);
  EXPECT_EQ(out["losses"]["first_difference"], 21);
  const Outcome short_of_steps =
      run(work_.path(), "compare run.toml --rounds 4 --turn-ms 0 --set train.steps=40 " + from, "2>&1");
  EXPECT_EQ(short_of_steps.status, 1);
  EXPECT_THAT(short_of_steps.text, HasSubstr("the sides begin after step 20, but 20 steps are left; 27 are needed"));
}

/// The files are read once.
TEST_F(Compare, ItsConfigurationDoesNotChangeWhileItRuns) {
  TrainProcess comparison = start({"--restart", "--b", "schedule.plugin=sched-1f1b", "--set", "parallel.pipeline=2"});
  while (!std::filesystem::exists(work_ / "runs/run-compare/b/start-2/metrics.jsonl") && !comparison.ended())
    ::usleep(5000);
  write_file(work_ / "run.toml", "broken");
  while (!std::filesystem::exists(work_ / "runs/run-compare/b/start-4/metrics.jsonl") && !comparison.ended())
    ::usleep(5000);
  EXPECT_FALSE(comparison.ended()) << comparison.err();
}

TEST_F(Compare, NothingOfAnEarlierComparisonIsReplaced) {
  compare("--b kernels.plugin=kernels-cpu");
  const std::string first = read_file(work_ / "runs/run-compare/compare.json");
  compare("--b kernels.plugin=kernels-cpu");
  EXPECT_TRUE(std::filesystem::exists(work_ / "runs/run-compare-1/compare.json"));
  EXPECT_EQ(read_file(work_ / "runs/run-compare/compare.json"), first);
  const Outcome same =
      run(work_.path(), "compare run.toml --b kernels.plugin=kernels-cpu --dir runs/run-compare", "2>&1");
  EXPECT_EQ(same.status, 2);
  EXPECT_THAT(same.text, HasSubstr("exists, but is not an empty folder"));
}

TEST_F(Compare, ASideThatDoesNothingEndsTheComparison) {
  TrainProcess comparison = start({"--same", "--set", "train.stall_timeout_s=1", "--set", "launch.start_timeout_s=1"});
  await_turns(comparison);
  const std::vector<pid_t> sides = comparison.ranks();
  ASSERT_EQ(sides.size(), 2u) << comparison.err();
  send_signal(sides[0], SIGSTOP);
  EXPECT_EQ(comparison.wait(), 1);
  EXPECT_THAT(comparison.err(), HasSubstr("side A has ended no step and written nothing for"));
}

TEST_F(Compare, RoundingIsMeasured) {
  const Json out = compare("--b kernels.plugin=kernels-cpu");
  EXPECT_FALSE(out["losses"]["bit_equal"]);
  EXPECT_GT(out["losses"]["max_ulp"], 0);
  EXPECT_LT(out["losses"]["max_relative"], 1e-3);
}

TEST_F(Compare, SidesMayBeStartedAgainForEachTurn) {
  const Json out = compare("--restart --b schedule.plugin=sched-1f1b");
  EXPECT_TRUE(out["restarts"]);
  EXPECT_TRUE(out["losses"]["bit_equal"]);
  EXPECT_EQ(out["losses"]["steps"], 3 + out["measured_steps_per_turn"].get<int>() + 2) << "which each start repeats";
  EXPECT_EQ(out["a"]["turns"].size(), 8u);
  EXPECT_TRUE(std::filesystem::exists(work_ / "runs/run-compare/b/start-9/metrics.jsonl")) << "warm-up and eight turns";
}

TEST_F(Compare, DifferentModelsAreComparedByTheirTimesOnly) {
  const Json out = compare("--b model.hidden=32 --different-models");
  EXPECT_TRUE(out["losses"].is_null());
  EXPECT_TRUE(out["grad_norms"].is_null());
  EXPECT_GT(out["step_time"]["value"], 0);
}

TEST_F(Compare, OverlaysAndVariablesAreOfOneSide) {
  write_file(work_ / "other.toml", "[batch]\nmicro = 2\n[log]\nlevel = \"debug\"\n");
  const Json out = compare("--b other.toml --env-b TRIAX_GPU_SEED=7 --set parallel.data=1");
  EXPECT_EQ(out["differences"][0], Json::parse(R"({"key":"batch.micro","a":"1","b":"2"})"));
  EXPECT_EQ(out["variables"], Json::parse(R"([{"name":"TRIAX_GPU_SEED","a":null,"b":"7"}])"));
  EXPECT_THAT(read_file(work_ / "runs/run-compare/b/resolved.toml"), HasSubstr("micro = 2"));
  EXPECT_THAT(read_file(work_ / "runs/run-compare/a/resolved.toml"), HasSubstr("micro = 1"));
}

TEST_F(Compare, ASideThatCannotStartIsReportedWithItsOutput) {
  const Outcome out =
      run(work_.path(), "compare run.toml --set train.steps=1000 --env-b TRIAX_PLUGIN_PATH=/nowhere", "2>&1");
  EXPECT_EQ(out.status, 2) << out.text;
  EXPECT_THAT(out.text, HasSubstr("side B cannot start; its output ends with:\n  TRIAX_PLUGIN_PATH names /nowhere"));
}

TEST_F(Compare, TheEndOfASideEndsTheComparison) {
  TrainProcess comparison = start({"--same"});
  await_turns(comparison);
  const std::vector<pid_t> sides = comparison.ranks();
  ASSERT_EQ(sides.size(), 2u) << comparison.err();
  send_signal(sides[1], SIGKILL);
  EXPECT_EQ(comparison.wait(), 1);
  EXPECT_THAT(comparison.err(), HasSubstr("side B was killed by signal 9"));
  EXPECT_TRUE(ends_soon(sides[0]));
}

TEST_F(Compare, AStopReportsTheCompleteRounds) {
  const std::filesystem::path page = work_ / "page.html";
  TrainProcess comparison = start({"--same", "--json", "--html", page});
  const std::filesystem::path records = work_ / "runs/run-compare/b/metrics.jsonl";
  await_turns(comparison);
  // 3 steps of warm-up, and 2 turns of 5 steps in each of 6 rounds
  while (!comparison.ended() && std::ranges::count(read_file(records), '\n') < 3 + 6 * 2 * 5) ::usleep(20'000);
  const std::vector<pid_t> sides = comparison.ranks();
  send_signal(comparison.pid(), SIGINT);
  EXPECT_EQ(comparison.wait(), 130) << comparison.err();
  const Json out = Json::parse(comparison.out());
  EXPECT_EQ(out["planned_rounds"], 10000);
  EXPECT_GE(out["rounds"], 4);
  EXPECT_EQ(out["step_time"]["rounds"], out["rounds"]);
  EXPECT_EQ(out["b"]["turns"].size(), 2 * out["rounds"].get<std::size_t>());
  EXPECT_TRUE(out["losses"]["bit_equal"]);
  EXPECT_THAT(read_file(page), HasSubstr("of 10000 rounds A B B A or B A A B, then the comparison was stopped"));
  EXPECT_EQ(Json::parse(read_file(work_ / "runs/run-compare/compare.json")), out);
  for (const pid_t side : sides) EXPECT_TRUE(ends_soon(side));
}

TEST_F(Compare, ItsEndEndsBothSides) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    TrainProcess comparison = start({"--same"});
    await_turns(comparison);
    const std::vector<pid_t> sides = comparison.ranks();
    ASSERT_EQ(sides.size(), 2u) << comparison.err();
    send_signal(comparison.pid(), signal);
    EXPECT_EQ(comparison.wait(), 128 + signal);
    for (const pid_t side : sides) EXPECT_TRUE(ends_soon(side)) << signal;
    std::filesystem::remove_all(work_ / "runs");
  }
}

/// Such as a comparing process that is killed while it answers.
TEST_F(Compare, ASideEndsIfOneOfItsRanksHasNoTurn) {
  os::LocalListener comparing(text("triax-test-{}-turns", ::getpid()));
  TrainProcess side(work_.path(), "side", {"train", "run.toml", "--set", "parallel.data=1"},
                    {text("{}={}", train::kTurnsVariable, comparing.name())});
  std::vector<os::LocalConnection> ranks;
  while (ranks.size() < 2 && !side.ended()) {
    if (std::optional<os::LocalConnection> rank = comparing.accept()) ranks.push_back(std::move(*rank));
    ::usleep(5000);
  }
  ASSERT_EQ(ranks.size(), 2u) << side.err();
  for (os::LocalConnection& rank : ranks) ASSERT_TRUE(rank.read_line(Clock::now() + std::chrono::seconds(60)));
  ranks[0].write_line(to_line(report::Turn{.until = 5}));
  ranks.clear();
  EXPECT_EQ(side.wait(), 1);
  EXPECT_THAT(side.err(), HasSubstr("the process that compares this run has ended"));
  EXPECT_THAT(side.err(), HasSubstr("repeat triax compare"));
}

} // namespace
} // namespace triax::test
