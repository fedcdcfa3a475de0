// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: parallelism does not change the loss, and a stalled rank reports what it waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "schedule/rows.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::RankTrace;
using test::TinyRun;
using test::Trace;
using test::train_ranks;

void expect_near(const Trace& one, const Trace& other) {
  ASSERT_EQ(one.losses.size(), other.losses.size());
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    EXPECT_NEAR(one.losses[step], other.losses[step], 1e-12);
    EXPECT_NEAR(one.norms[step], other.norms[step], 1e-12 * one.norms[step]);
  }
}

TEST(Ranks, AgreeOnTheLargestNumberOverAllAxes) {
  TinyRun run;
  for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  control::LocalStore store;
  std::vector<std::vector<std::int32_t>> agreed(8);
  std::vector<std::string> positions(8);
  std::vector<std::thread> threads;
  for (int index = 0; index < 8; ++index)
    threads.emplace_back([&, index] {
      test::TinySource source;
      train::Rank rank(config, layout, index, store, null_log(), {.training = &source, .threads = 1});
      positions[static_cast<std::size_t>(index)] = rank.position();
      for (int round = 0; round < 8; ++round) // each rank has the largest value once
        agreed[static_cast<std::size_t>(index)].push_back(rank.agree(index == round ? 100 + round : -index));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& of : agreed) EXPECT_THAT(of, ::testing::ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  EXPECT_THAT(positions, ::testing::Each("before its first step"));
}

/// Each rank asks once, in a step and in an evaluation; all learn of it.
TEST(Ranks, ARequestOfAnyRankReachesAll) {
  TinyRun run;
  for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
  run.keys["eval.batches"] = "3";
  run.keys["train.steps"] = "20";
  const config::RunConfig config = run.config();
  test::run_ranks(config, train::layout_of(config), [](train::Rank& rank, int index) {
    for (int asking = 0; asking < 8; ++asking) {
      const executor::Request request = [=] { return index == asking ? 15 : 0; };
      EXPECT_EQ(rank.step(request).request, 15) << "of rank " << asking;
      EXPECT_EQ(rank.step().request, 0);
      const train::Rank::Evaluated ended = rank.evaluate_unless(request);
      EXPECT_EQ(ended.request, 15);
      EXPECT_FALSE(ended.result) << "three batches";
      const train::Rank::Evaluated whole = rank.evaluate_unless({});
      EXPECT_EQ(whole.request, 0);
      EXPECT_TRUE(whole.result);
    }
  });
}

// For example, if the scheduler's file differs between machines.
TEST(Ranks, GroupsOfOneRankAreNotJoined) {
  test::TinyRun run;
  const test::Trace joined_nothing = test::train(run, 2);
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["comm.plugin"] = "\"comm-processes\""; // its join() throws
  EXPECT_EQ(test::train(run, 2), joined_nothing);
}

TEST(Ranks, RefuseAScheduleThatDiffersFromRank0s) {
  TinyRun run;
  run.keys["parallel.pipeline"] = "2";
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  const PipelineShape shape = train::pipeline_shape(config);
  const Schedule other =
      test::schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"});
  control::LocalStore store;
  control::JobAbort flag;
  std::string message;
  std::thread first([&] {
    test::TinySource source;
    try {
      const train::Rank rank(config, layout, 0, store, null_log(), {.training = &source, .threads = 1, .abort = &flag});
    } catch (const Error&) { // the other rank never joins
    }
  });
  try {
    test::TinySource source;
    const train::Rank rank(config, layout, 1, store, null_log(),
                           {.training = &source, .schedule = &other, .threads = 1});
  } catch (const Error& error) {
    message = error.what();
  }
  flag.raise(1, "rank 1 has gone");
  first.join();
  EXPECT_THAT(message, ::testing::HasSubstr("rank 1 has another schedule than rank 0"));
}

TEST(Ranks, DataParallelismDoesNotShow) {
  TinyRun run;
  run.keys["train.precision"] = "\"fp64\"";
  const std::vector<RankTrace> one = train_ranks(run, 4);
  run.keys["parallel.data"] = "2";
  const std::vector<RankTrace> two = train_ranks(run, 4);
  expect_near(one[0].trace, two[0].trace);
  EXPECT_EQ(two[0].trace, two[1].trace); // same bits on all ranks
  EXPECT_NEAR(one[0].held_out, two[1].held_out, 1e-12);
  EXPECT_TRUE(one[0].traffic.empty());
  ASSERT_EQ(two[0].traffic.size(), 1u);
  EXPECT_EQ(two[0].traffic[0].group, "data");
  EXPECT_EQ(two[0].traffic[0].plugin, "comm-local");
  EXPECT_EQ(two[0].traffic[0].ops,
            4u * (6 + 2)); // per step: six buckets of four layers, the squares of the norm, and the losses
  EXPECT_GT(two[0].traffic[0].bytes_out, 0u);
}

TEST(Ranks, TensorParallelismDoesNotShow) {
  TinyRun run;
  run.keys["train.precision"] = "\"fp64\"";
  const std::vector<RankTrace> one = train_ranks(run, 4);
  run.keys["parallel.tensor"] = "2"; // 13 tokens: the second rank has a padding row
  const std::vector<RankTrace> two = train_ranks(run, 4);
  expect_near(one[0].trace, two[0].trace);
  EXPECT_EQ(two[0].trace.losses, two[1].trace.losses);
  EXPECT_EQ(two[0].trace.norms, two[1].trace.norms);
}

/// Compares a rank's weights with those of the single rank by name.
void expect_same_weights(const std::vector<RankTrace>& one, const std::vector<RankTrace>& many) {
  ASSERT_EQ(one.size(), 1u);
  std::size_t found = 0;
  for (const RankTrace& rank : many)
    for (const auto& [name, bytes] : rank.weights) {
      EXPECT_EQ(bytes, one[0].weights.at(name)) << name;
      ++found;
    }
  EXPECT_GE(found, one[0].weights.size());
}

TEST(Ranks, PipelineParallelismChangesNoBit) {
  TinyRun run;
  run.keys["model.layers"] = "3";
  const std::vector<RankTrace> one = train_ranks(run, 4);
  for (const int pipeline : {2, 3}) {
    run.keys["parallel.pipeline"] = std::to_string(pipeline);
    const std::vector<RankTrace> many = train_ranks(run, 4);
    for (const RankTrace& rank : many) {
      EXPECT_EQ(rank.trace.losses, one[0].trace.losses);
      EXPECT_EQ(rank.trace.norms, one[0].trace.norms);
      EXPECT_EQ(rank.held_out, one[0].held_out);
    }
    expect_same_weights(one, many);
  }
}

// A V: one rank has the first and last stage, the other the two stages between. A rank passes tensors to itself, has
// both gradients of the tied embedding, and sends in both directions. Backwards are split and delayed.
TEST(Ranks, AVShapedStageMapChangesNoBit) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  const std::vector<RankTrace> one = train_ranks(run, 4);
  run.keys["parallel.pipeline"] = "2";
  run.keys["parallel.chunks"] = "2";
  const PipelineShape shape{2, 2, 4};
  const Schedule rows =
      test::schedule_of(shape, {0, 1, 1, 0},
                        {"0F0 0F1 3F0 3I0 3W0 0F2 3F1 3B1 0I0 0W0 0F3 3F2 3I2 0I1 3F3 3W2 3B3 0W1 0B2 0I3 0W3",
                         "1F0 2F0 1F1 2F1 2I0 1I0 2W0 1F2 2F2 2B1 1W0 1B1 1F3 2F3 2I2 2W2 1B2 2B3 1B3"});
  const std::vector<RankTrace> vee = train_ranks(run, 4, &rows);
  for (const RankTrace& rank : vee) {
    EXPECT_EQ(rank.trace.losses, one[0].trace.losses);
    EXPECT_EQ(rank.trace.norms, one[0].trace.norms);
    EXPECT_EQ(rank.held_out, one[0].held_out);
  }
  expect_same_weights(one, vee);
  EXPECT_EQ(vee[0].weights.count("embedding/tokens.weight"), 1u);
  EXPECT_EQ(vee[1].weights.count("embedding/tokens.weight"), 0u);
}

/// Blocks step 2 until let_go().
class HeldSource final : public executor::BatchSource {
 public:
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    if (samples[0] >= 4) gate_.wait(false);
    source_.microbatch(samples, tokens, targets);
  }
  void let_go() {
    gate_ = true;
    gate_.notify_all();
  }

 private:
  test::TinySource source_;
  std::atomic<bool> gate_ = false;
};

TEST(Ranks, NameTheTransferThatAStalledRankWaitsFor) {
  TinyRun run;
  run.keys["parallel.pipeline"] = "2";
  run.keys["train.stall_timeout_s"] = "1";
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  control::LocalStore store;
  HeldSource held;
  std::string error;
  std::thread late([&] {
    train::Rank rank(config, layout, 1, store, null_log(), {.training = &held, .threads = 1});
    EXPECT_THROW(test::train(rank, 2), Error);
  });
  {
    test::TinySource source;
    train::Rank rank(config, layout, 0, store, null_log(), {.training = &source, .threads = 1});
    try {
      test::train(rank, 2);
    } catch (const Error& caught) {
      error = caught.what();
    }
  }
  held.let_go();
  late.join();
  EXPECT_THAT(error, ::testing::HasSubstr("step 2, 0F2, waiting for 0SEND_F0 (pipeline rank 1)"));
}

} // namespace
} // namespace triax
