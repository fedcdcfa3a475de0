// SPDX-License-Identifier: Apache-2.0
// Overhead of the engine: complete training steps with kernels-sim at a speed that makes arithmetic free. The remaining
// time is the executor, the layers that issue operations, the checks of each operation, and the communicator.
//
//   alone     one rank; its actions are passes and the optimizer step
//   two_by_*  two ranks as threads of this process, with sends and receives through a communicator
//   layers    transformer blocks per rank: the increase per block is the cost of its operations
//
// us_per_action: time of a step divided by the actions of rank 0's program, which includes reading the samples of the
// next step. us_between: time per step outside of that: uploads, learning rate, results.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <thread>

#include "control/abort_flag.hpp"
#include "train/rank_setup.hpp"
#include "train/tiny_run.hpp"
#include "triax/rank_activity.hpp"

namespace {
using namespace triax;

constexpr int kSteps = 200, kMicrobatches = 32;

void describe(test::TinyRun& run, const std::string& comm, int pipeline, std::int64_t layers_per_rank) {
  run.keys["model.layers"] = text("{}", layers_per_rank * pipeline);
  run.keys["parallel.pipeline"] = text("{}", pipeline);
  run.keys["batch.global"] = text("{}", kMicrobatches);
  run.keys["train.steps"] = text("{}", 2 * kSteps); // more than there are: each step reads the samples of the next
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
  run.keys["comm.plugin"] = "\"" + comm + "\"";
  run.keys["kernels.plugin"] = "\"kernels-sim\"";
  run.keys["kernels.tflops"] = run.keys["kernels.gb_per_s"] = "1e9";
}

/// Adds up the time from the first action of each step to the end of its program.
class Walks final : public executor::WalkObserver {
 public:
  void walk_begins(std::int64_t) override { began_ = Clock::now(); }
  void walk_ends(std::int64_t) override { total += Clock::now() - began_; }
  Clock::duration total{};

 private:
  Clock::time_point began_;
};

std::size_t actions_of_rank_0(const config::RunConfig& run, const Layout& layout) {
  const train::RankPlugins plugins(run, layout, 0, 1, null_log());
  return train::make_programs(run, layout, plugins, plugins.rows()).training.front().actions().size();
}

void step(benchmark::State& state, const std::string& comm, int pipeline) {
  test::TinyRun toml;
  describe(toml, comm, pipeline, state.range(0));
  const config::RunConfig run = toml.config();
  const Layout layout = train::layout_of(run);
  control::LocalStore store;
  control::JobAbort abort;
  const control::JobAbort::Listening listening(abort, store);
  test::TinySource source;
  const auto rank_at = [&](int index, executor::WalkObserver* observer = nullptr) {
    return std::make_unique<train::Rank>(
        run, layout, index, store, null_log(),
        train::RankOptions{.training = &source, .observer = observer, .threads = 1, .abort = &abort});
  };
  Walks walks;
  Clock::duration taken{};
  std::thread other;
  if (pipeline == 2) {
    other = std::thread([&] {
      RankActivity activity; // as in a training run
      const RankActivity::Binding bound(activity);
      try {
        const auto rank = rank_at(1);
        for (int i = 0; i < 1 + kSteps; ++i) rank->step();
      } catch (const std::exception& error) {
        abort.raise(1, error.what());
      }
    });
  }
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  try {
    const auto rank = rank_at(0, &walks);
    rank->step(); // warm-up: touch buffers, connect transports
    walks.total = {};
    const Clock::time_point began = Clock::now();
    for (auto _ : state) rank->step();
    taken = Clock::now() - began;
  } catch (const std::exception& error) {
    abort.raise(0, error.what());
    state.SkipWithError(error.what());
  }
  if (other.joinable()) other.join();
  using Microseconds = std::chrono::duration<double, std::micro>;
  const auto actions = static_cast<double>(actions_of_rank_0(run, layout));
  const auto steps = static_cast<double>(state.iterations());
  state.counters["actions"] = actions;
  state.counters["us_per_action"] = Microseconds(taken).count() / (actions * steps);
  state.counters["us_between"] = Microseconds(taken - walks.total).count() / steps;
}

void alone(benchmark::State& state) {
  step(state, "comm-local", 1);
}
void two_by_comm_local(benchmark::State& state) {
  step(state, "comm-local", 2);
}
void two_by_comm_ucx(benchmark::State& state) {
  step(state, "comm-ucx", 2);
}

void shapes(benchmark::internal::Benchmark* of) {
  of->ArgName("layers")->Arg(1)->Arg(4)->Iterations(kSteps)->UseRealTime();
}
BENCHMARK(alone)->Apply(shapes);
BENCHMARK(two_by_comm_local)->Apply(shapes);
BENCHMARK(two_by_comm_ucx)->Apply(shapes);

} // namespace

BENCHMARK_MAIN();
