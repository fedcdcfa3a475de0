// SPDX-License-Identifier: Apache-2.0
// Steady state: from the third step on, the thread that runs the program does not call operator new. A separate
// program, because it counts every call.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "cost/integer_program.hpp"
#include "executor/token_sampler.hpp"
#include "schedule/rows.hpp"
#include "support/count_allocations.hpp"
#include "train/generating.hpp"
#include "train/preflight.hpp"

namespace triax {
namespace {

using test::allocations;

class Counter final : public executor::WalkObserver {
 public:
  void walk_begins(std::int64_t) override { before_ = allocations(); }
  void walk_ends(std::int64_t) override { of_step.push_back(allocations() - before_); }
  std::vector<std::size_t> of_step;

 private:
  std::size_t before_ = 0;
};

std::vector<std::size_t> steady(test::TinyRun& run, const char* row = nullptr) {
  Counter counter;
  counter.of_step.reserve(8);
  train::RankOptions options;
  options.observer = &counter;
  options.threads = 2;
  Schedule schedule;
  if (row) options.schedule = &(schedule = test::schedule_of({1, 1, 4}, {0}, {row}));
  test::TinyRank rank(run.config(), options);
  for (int step = 1; step <= 6; ++step) {
    rank->step();
    if (step == 4) rank->evaluate();
  }
  return {counter.of_step.begin() + 2, counter.of_step.end()};
}

const std::vector<std::size_t> kNone(4, 0);

TEST(SteadyState, TheHookCounts) {
  const std::size_t before = allocations();
  const auto one = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations() - before, 2u) << *one;
}

TEST(SteadyState, AllocatesNothing) {
  for (const char* kernels : {"\"kernels-reference\"", "\"kernels-cpu\""})
    for (const char* optimizer : {"\"optim-adamw\"", "\"optim-lamb\"", "\"optim-muon\"", "\"optim-sgd\""}) {
      test::TinyRun run;
      run.keys["kernels.plugin"] = kernels;
      run.keys["optimizer.plugin"] = optimizer;
      EXPECT_EQ(steady(run), kNone) << kernels << ", " << optimizer;
    }
}

/// With a small loss scale no step is skipped; with a large one, steps are skipped and the scale falls.
TEST(SteadyState, AllocatesNothingInFp16) {
  for (const char* initial : {"1024.0", "1073741824.0"}) {
    test::TinyRun run;
    run.keys["kernels.plugin"] = "\"kernels-cpu\"";
    run.keys["train.precision"] = "\"fp16\"";
    run.keys["loss_scale.initial"] = initial;
    EXPECT_EQ(steady(run), kNone) << initial;
  }
}

TEST(SteadyState, AllocatesNothingWithSplitBackwards) {
  test::TinyRun run;
  EXPECT_EQ(steady(run, "0F0 0F1 0I0 0F2 0I1 0W0 0F3 0I2 0I3 0W1 0W2 0W3"), kNone);
}

/// Allocations in steps 3 to 6 of one rank.
std::vector<std::size_t> steady_rank(const config::RunConfig& config, const Layout& layout, int index, Store& store,
                                     control::JobAbort& abort) {
  test::TinySource source;
  Counter counter;
  counter.of_step.reserve(8);
  train::Rank rank(config, layout, index, store, null_log(),
                   {.training = &source, .held_out = &source, .observer = &counter, .threads = 1, .abort = &abort});
  try {
    for (int step = 1; step <= 6; ++step) {
      rank.step();
      if (step == 4) rank.evaluate();
    }
  } catch (const std::exception& error) {
    abort.raise(index, error.what()); // before the rank is destroyed, because the others would wait for it
    throw;
  }
  return {counter.of_step.begin() + 2, counter.of_step.end()};
}

/// The same for every rank of a layout; each counts on its own thread.
std::vector<std::vector<std::size_t>> steady_ranks(const test::TinyRun& run) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  control::LocalStore store;
  control::JobAbort abort;
  const control::JobAbort::Listening listening(abort, store);
  std::vector<std::vector<std::size_t>> out(static_cast<std::size_t>(layout.world_size()));
  std::vector<std::thread> threads;
  threads.reserve(out.size());
  for (int index = 0; index < layout.world_size(); ++index)
    threads.emplace_back([&, index] {
      try {
        out[static_cast<std::size_t>(index)] = steady_rank(config, layout, index, store, abort);
      } catch (const std::exception& error) {
        abort.raise(index, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(abort.reason(), "");
  return out;
}

void expect_steady(const test::TinyRun& run) {
  const std::vector<std::vector<std::size_t>> ranks = steady_ranks(run);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(ranks[rank], kNone) << "rank " << rank;
}

TEST(SteadyState, AllocatesNothingOnAnyRankOfThreeAxes) {
  for (const char* kernels : {"\"kernels-reference\"", "\"kernels-cpu\""}) {
    test::TinyRun run;
    run.keys["model.layers"] = "4";
    run.keys["kernels.plugin"] = kernels;
    run.keys["schedule.plugin"] = "\"sched-1f1b\"";
    run.keys["batch.global"] = "16";
    for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
    SCOPED_TRACE(kernels);
    expect_steady(run);
  }
}

/// Reduce-scatters and all-gathers, and stages that share accumulators and the memory of weights.
TEST(SteadyState, AllocatesNothingWhereDataRanksDivideGradientsAndParameters) {
  test::TinyRun run;
  run.keys["model.layers"] = "16";
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  run.keys["schedule.plugin"] = "\"sched-breadth-first\"";
  run.keys["parallel.chunks"] = "8";
  run.keys["parallel.data"] = "2";
  for (const char* shard : {"\"gradients\"", "\"parameters\""}) {
    run.keys["optimizer.shard"] = shard;
    SCOPED_TRACE(shard);
    expect_steady(run);
  }
}

TEST(SteadyState, AllocatesNothingWithStateOnTheDisk) {
  test::TinyRun run;
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  run.keys["parallel.data"] = "2";
  run.keys["memory.offload"] = "\"disk\"";
  run.keys["memory.offload_buffer_bytes"] = "4096";
  expect_steady(run);
}

TEST(SteadyState, AllocatesNothingWhereGroupsOfBlocksAreRecomputed) {
  test::TinyRun run;
  run.keys["model.layers"] = "5";
  run.keys["memory.recompute"] = "\"full\"";
  run.keys["memory.recompute_layers"] = "2";
  expect_steady(run);
}

TEST(SteadyState, AllocatesNothingWhereKeptInputsArePartitioned) {
  test::TinyRun run;
  run.keys["parallel.tensor"] = "2";
  run.keys["memory.recompute"] = "\"full\"";
  run.keys["memory.partition_activations"] = "true";
  expect_steady(run);
}

/// Two stages of two blocks. The first has R.
void use_two_stages(test::TinyRun& run) {
  run.keys["model.layers"] = "4";
  run.keys["parallel.pipeline"] = "2";
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
}

TEST(SteadyState, AllocatesNothingWhereStagesRecomputeEarly) {
  for (const char* recompute : {"\"full\"", "\"cheap\""}) {
    test::TinyRun run;
    use_two_stages(run);
    run.keys["memory.recompute"] = recompute;
    SCOPED_TRACE(recompute);
    expect_steady(run);
  }
}

/// In the least memory, all blocks of the first stage run steps again.
TEST(SteadyState, AllocatesNothingWhereChosenStepsRunAgain) {
  if (const std::string error = cost::integer_solver_error(); !error.empty()) GTEST_SKIP() << error;
  test::TinyRun run;
  use_two_stages(run);
  run.keys["memory.recompute"] = R"(["optimal", "none"])";
  run.keys["memory.activation_budget"] = "\"1 B\"";
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  const train::Preflight plan = train::preflight(config, train::choose_placement(config), null_log());
  ASSERT_EQ(plan.refusals.size(), 1u);
  const std::string &message = plan.refusals.front().message, before = " need ";
  const std::size_t at = message.find(before);
  ASSERT_NE(at, std::string::npos) << message;
  run.keys["memory.activation_budget"] = text("\"{} B\"", std::stoull(message.substr(at + before.size())));
  expect_steady(run);
}

TEST(SteadyState, AllocatesNothingInAStepWithARecordedTimeline) {
  test::TinyRun run;
  for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
  run.keys["batch.global"] = "8";
  run.keys["log.timeline"] = "4";
  std::filesystem::create_directories(run.folder() / "run");
  expect_steady(run);
  EXPECT_TRUE(std::filesystem::exists(run.folder() / "run/timeline-rank-7.json"));
}

TEST(SteadyState, AllocatesNothingWhereBoundariesAreScattered) {
  test::TinyRun run;
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
  run.keys["parallel.pipeline"] = run.keys["parallel.tensor"] = "2";
  run.keys["parallel.scatter_gather"] = "true";
  run.keys["batch.global"] = "8";
  expect_steady(run);
}

/// Tokens after the first of each size of calls, on every rank.
TEST(SteadyState, GeneratingAllocatesNothing) {
  for (const char* kernels : {"\"kernels-reference\"", "\"kernels-cpu\""}) {
    test::TinyRun run;
    run.keys["kernels.plugin"] = kernels;
    run.keys["parallel.pipeline"] = run.keys["parallel.tensor"] = "2";
    const config::RunConfig config = run.config();
    test::run_ranks(train::layout_of(config), [&](test::Rank& rank) {
      test::TinyGenerator of(config, rank, {});
      const std::vector<std::int32_t> tokens(2 * 3, 1);
      const auto append = [&](std::int64_t count) {
        of.generator().append({const_cast<std::int32_t*>(tokens.data()), DType::i32, {count, 2}});
      };
      for (int warm = 0; warm < 2; ++warm) {
        of.generator().restart();
        append(3); // calls of 2 and 1
        append(1);
      }
      const std::size_t before = allocations();
      append(1);
      of.generator().restart();
      append(3);
      append(1);
      EXPECT_EQ(allocations() - before, 0u) << kernels << ", rank " << rank.index();
    });
  }
}

TEST(SteadyState, ChoosingATokenAllocatesNothing) {
  executor::TokenSampler sampler(
      {.temperature = 1, .top_k = 20, .top_p = 0.9, .min_p = 0.01, .repetition_penalty = 1.1}, 50);
  std::vector<float> logits(50);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
  const std::vector<std::int32_t> sequence = {1, 2, 3};
  const TensorView view(logits.data(), DType::f32, {50});
  const std::size_t before = allocations();
  for (std::uint32_t sample = 0; sample < 5; ++sample) sampler.choose(view, sequence, sample);
  EXPECT_EQ(allocations() - before, 0u);
}

TEST(SteadyState, AllocatesNothingWithSeveralChunks) {
  test::TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["schedule.plugin"] = "\"sched-interleaved\"";
  run.keys["batch.global"] = "8";
  run.keys["parallel.pipeline"] = run.keys["parallel.chunks"] = "2";
  expect_steady(run);
}

} // namespace
} // namespace triax
