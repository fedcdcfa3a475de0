// SPDX-License-Identifier: Apache-2.0
// The timeline of a step in the run's folder: passes, other actions, communication and waits of every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "report/timeline_file.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using schedule::Kind;
using test::TinyRank;
using test::TinyRun;
using ::testing::UnorderedElementsAre;

class Counted final : public executor::WalkObserver {
 public:
  void walk_begins(std::int64_t) override { ++walks; }
  void ran(ActionId, const executor::ActionTime&) override { ++actions; }
  void walk_ends(std::int64_t) override {}
  int walks = 0, actions = 0;
};

class StepTrace : public ::testing::Test {
 protected:
  StepTrace() {
    run_.keys["log.timeline"] = "2";
    std::filesystem::create_directories(run_.folder() / "run");
  }
  TinyRun run_;
};

TEST_F(StepTrace, TimesThePassesOfTheOneStep) {
  Counted others;
  train::RankOptions options;
  options.observer = &others;
  TinyRank rank(run_, options);
  rank->step();
  EXPECT_FALSE(std::filesystem::exists(run_.folder() / "run/timeline-rank-0.json"));
  rank->step();
  const report::RankTimeline result = report::read_timeline(run_.folder() / "run", 0);
  rank->step();
  EXPECT_EQ(others.walks, 3);
  EXPECT_EQ(others.actions, 3 * (8 + 4)); // REDUCE_GRAD, REDUCE_TIED, NORM, OPT_STEP

  EXPECT_EQ(result.rank, 0);
  EXPECT_EQ(result.step, 2);
  ASSERT_EQ(result.passes.size(), 8u); // sched-gpipe: four forwards and four backwards
  double before = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const schedule::MeasuredPass& pass = result.passes[i];
    EXPECT_EQ(pass.span.kind, i < 4 ? Kind::forward : Kind::backward);
    EXPECT_GE(pass.span.start, before);
    EXPECT_GT(pass.span.end, pass.span.start);
    EXPECT_EQ(pass.waited_ms, 0); // no other rank
    before = pass.span.end;
  }
  EXPECT_EQ(result.actions.size(), 4u);
  EXPECT_TRUE(result.calls.empty()); // all groups have one rank
}

TEST_F(StepTrace, IsNotThereUnlessAskedFor) {
  run_.keys["log.timeline"] = "0";
  TinyRank rank(run_);
  rank->step();
  EXPECT_FALSE(std::filesystem::exists(run_.folder() / "run/timeline-rank-0.json"));
}

TEST_F(StepTrace, AStepAfterTheLastIsRefused) {
  run_.keys["log.timeline"] = "7";
  const config::LoadResult loaded = run_.load();
  ASSERT_EQ(loaded.refusals.size(), 1u);
  EXPECT_NE(loaded.refusals[0].text.find("log.timeline = 7 is after the last step, train.steps = 6"), std::string::npos)
      << loaded.refusals[0].text;
}

/// Losses of a run with two ranks on each axis, as threads.
std::vector<double> train_ranks(const config::RunConfig& config, int steps) {
  const Layout layout = train::layout_of(config);
  control::LocalStore store;
  control::JobAbort abort;
  const control::JobAbort::Listening result(abort, store);
  std::vector<double> losses(static_cast<std::size_t>(steps));
  std::vector<std::thread> threads;
  for (int number = 0; number < layout.world_size(); ++number)
    threads.emplace_back([&, number] {
      try {
        test::TinySource source;
        train::Rank rank(config, layout, number, store, null_log(),
                         {.training = &source, .threads = 1, .abort = &abort});
        for (int step = 0; step < steps; ++step) {
          const double loss = rank.step().loss;
          if (number == 0) losses[static_cast<std::size_t>(step)] = loss;
        }
      } catch (const std::exception& error) {
        abort.raise(number, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(abort.reason(), "");
  return losses;
}

/// Two ranks on each axis, four microbatches.
class TraceOfRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = new TinyRun;
    for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run_->keys[axis] = "2";
    run_->keys["batch.global"] = "8";
    without_ = train_ranks(run_->config(), 3);
    run_->keys["log.timeline"] = "2";
    std::filesystem::create_directories(run_->folder() / "run");
    with_ = train_ranks(run_->config(), 3);
    for (int rank = 0; rank < kRanks; ++rank) ranks_.push_back(report::read_timeline(run_->folder() / "run", rank));
  }
  static void TearDownTestSuite() {
    ranks_.clear();
    delete run_;
  }
  static int pipeline_of(int rank) { return rank / 4; } // order: tensor, data, pipeline
  static int other_stage(int rank) { return (rank + 4) % kRanks; }
  static std::string label(const schedule::MeasuredPass& action) {
    return schedule::action_text(action.span.kind, action.span.stage, action.span.microbatch);
  }
  /// Passes and other actions, in the order of their starts.
  static std::vector<schedule::MeasuredPass> all_actions(const report::RankTimeline& rank) {
    std::vector<schedule::MeasuredPass> out = rank.passes;
    out.insert(out.end(), rank.actions.begin(), rank.actions.end());
    std::ranges::stable_sort(out, {}, [](const schedule::MeasuredPass& of) { return of.span.start; });
    return out;
  }

  static constexpr int kRanks = 8;
  static inline TinyRun* run_ = nullptr;
  static inline std::vector<double> without_, with_; // losses without and with a timeline
  static inline std::vector<report::RankTimeline> ranks_;
};

TEST_F(TraceOfRanks, ChangesNoBit) {
  EXPECT_EQ(with_, without_);
}

TEST_F(TraceOfRanks, HasEveryActionOfTheProgram) {
  for (const report::RankTimeline& rank : ranks_) {
    EXPECT_EQ(rank.passes.size(), 8u);
    std::map<Kind, int> count;
    for (const schedule::MeasuredPass& action : rank.actions) ++count[action.span.kind];
    const bool first = pipeline_of(rank.rank) == 0;
    EXPECT_EQ(count, (std::map<Kind, int>{{first ? Kind::send_f : Kind::recv_f, 4},
                                          {first ? Kind::recv_b : Kind::send_b, 4},
                                          {Kind::reduce_grad, 1},
                                          {Kind::reduce_tied, 1},
                                          {Kind::norm, 1},
                                          {Kind::opt_step, 1}}))
        << "rank " << rank.rank;
  }
}

TEST_F(TraceOfRanks, HasEverySendAndReceiveWithItsPeer) {
  for (const report::RankTimeline& rank : ranks_) {
    const int stage = pipeline_of(rank.rank);
    std::set<std::string> sent, received;
    for (const report::MeasuredCall& call : rank.calls) {
      if (call.axis != "pipeline" || (call.call != "send" && call.call != "receive") || call.awaited) continue;
      EXPECT_EQ(call.peer, other_stage(rank.rank));
      EXPECT_EQ(call.bytes, 6u * 8 * sizeof(float)); // sequence x hidden, one sample
      EXPECT_TRUE((call.call == "send" ? sent : received).insert(call.action).second) << call.action;
    }
    const auto each = [stage](const char* kind) {
      std::set<std::string> out;
      for (int mb = 0; mb < 4; ++mb) out.insert(text("{}{}{}", stage, kind, mb));
      return out;
    };
    EXPECT_EQ(sent, each(stage == 0 ? "SEND_F" : "SEND_B"));
    EXPECT_EQ(received, each(stage == 0 ? "RECV_B" : "RECV_F"));
  }
}

/// Every call is within the step, and was posted during the action that it names.
TEST_F(TraceOfRanks, CallsAreOfTheActionsThatPostThem) {
  for (const report::RankTimeline& rank : ranks_) {
    SCOPED_TRACE(rank.rank);
    std::map<std::string, schedule::Span> actions;
    for (const schedule::MeasuredPass& action : all_actions(rank)) actions[label(action)] = action.span;
    double posted = rank.start;
    for (const report::MeasuredCall& call : rank.calls) {
      EXPECT_GE(call.posted, posted);
      EXPECT_GE(call.completed, call.posted);
      EXPECT_LE(call.completed, rank.end);
      EXPECT_GT(call.bytes, 0u);
      ASSERT_TRUE(actions.contains(call.action)) << call.action;
      EXPECT_GE(call.posted, actions[call.action].start);
      EXPECT_LE(call.posted, actions[call.action].end);
      posted = call.posted;
    }
  }
}

TEST_F(TraceOfRanks, HasTheCollectivesOfLayersGradientsAndNorm) {
  for (const report::RankTimeline& rank : ranks_) {
    SCOPED_TRACE(rank.rank);
    std::set<std::string> of_layers, of_gradients, of_norm, of_tied;
    for (const report::MeasuredCall& call : rank.calls) {
      if (call.axis == "tensor" && call.call == "all_reduce" && call.awaited) of_layers.insert(call.action);
      if (call.axis == "data" && call.call == "all_reduce" && !call.awaited) of_gradients.insert(call.action);
      if (call.call == "all_gather" && call.awaited) of_norm.insert(call.action);
      if (call.axis == "pipeline" && call.call == "exchange" && call.awaited) {
        of_tied.insert(call.action);
        EXPECT_EQ(call.peer, other_stage(rank.rank));
      }
    }
    EXPECT_EQ(of_layers.size(), 8u + 1); // forward and backward of every microbatch; requests, in NORM
    EXPECT_THAT(of_gradients, UnorderedElementsAre(text("{}REDUCE_GRAD", pipeline_of(rank.rank))));
    EXPECT_THAT(of_norm, UnorderedElementsAre("NORM"));
    EXPECT_THAT(of_tied, UnorderedElementsAre("REDUCE_TIED"));
  }
}

/// The step consists of computation (actions without the waits inside them), waits, and executor time between actions.
TEST_F(TraceOfRanks, WaitsAndComputingAreDisjointPartsOfTheStep) {
  for (const report::RankTimeline& rank : ranks_) {
    SCOPED_TRACE(rank.rank);
    double waited = 0, busy = 0, free = rank.start;
    for (const report::MeasuredWait& wait : rank.waits) {
      EXPECT_GE(wait.start, free);
      EXPECT_GT(wait.end, wait.start);
      EXPECT_FALSE(wait.reason.empty());
      waited += wait.end - wait.start;
      free = wait.end;
      const bool received = wait.reason.find("RECV_") != std::string::npos;
      EXPECT_EQ(wait.peer, received ? other_stage(rank.rank) : wait.peer) << wait.reason;
    }
    EXPECT_LE(free, rank.end);
    free = rank.start;
    for (const schedule::MeasuredPass& action : all_actions(rank)) {
      EXPECT_GE(action.span.start, free) << label(action);
      free = action.span.end;
      busy += action.span.length();
      for (const report::MeasuredWait& wait : rank.waits)
        busy -= std::max(0.0, std::min(wait.end, action.span.end) - std::max(wait.start, action.span.start));
    }
    EXPECT_LE(free, rank.end);
    EXPECT_GT(busy, 0);
    EXPECT_LE(busy + waited, rank.end - rank.start + 1e-6); // rounding of sums of ms since boot
  }
}

} // namespace
} // namespace triax
