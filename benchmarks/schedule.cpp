// SPDX-License-Identifier: Apache-2.0
// Time to prepare a schedule: create rows, verify, lower, verify the programs, and simulate; over microbatches on 64
// ranks, and over stages, as ranks or as chunks of one. The complexity is in actions of the programs and should be
// linear.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "config/option_value.hpp"
#include "plugin/loader.hpp"
#include "schedule/lower.hpp"
#include "schedule/simulate.hpp"
#include "schedule/verify.hpp"
#include "support/installation.hpp"
#include "triax/error.hpp"

namespace {
using namespace triax;

constexpr int kPipeline = 64;
constexpr schedule::Assumptions kMin = schedule::everywhere(schedule::kMinGuarantee);

class Made {
 public:
  Made(const std::string& name, const PipelineShape& of)
      : library_(plugin::load(test::plugin_file(name), Scheduler::kKind)),
        options_(defaults(library_)),
        scheduler_(plugin::create<Scheduler>(library_, {options_, null_log(), layout_, 0, 1})),
        shape(of),
        costs{std::vector<schedule::PassTimes>(static_cast<std::size_t>(shape.stages()), {18.5, 18.1, 9.3}),
              std::vector<double>(static_cast<std::size_t>(shape.stages() - 1), 0.6)} {}

  Schedule rows() const { return scheduler_->rows(shape); }

  static void require(const std::vector<schedule::Violation>& violations) {
    if (!violations.empty()) throw Error(violations.front().reason());
  }
  static void count(benchmark::State& state, const std::vector<schedule::Program>& programs) {
    std::size_t actions = 0;
    for (const schedule::Program& program : programs) actions += program.actions().size();
    state.SetComplexityN(static_cast<std::int64_t>(actions));
    state.counters["actions"] = static_cast<double>(actions);
  }

 private:
  static Options defaults(const plugin::Library& library) {
    Options out;
    for (const triax_option& option : library.options) out.set(option.name, config::read_default(option).value.value());
    return out;
  }

  const plugin::Library& library_;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  plugin::Instance<Scheduler> scheduler_;

 public:
  const PipelineShape shape;
  const schedule::Costs costs;
};

void make_verify_simulate(benchmark::State& state, const Made& made) {
  for (auto _ : state) {
    const Schedule rows = made.rows();
    Made::require(schedule::verify(rows, made.shape));
    const std::vector<schedule::Program> programs = schedule::lower(rows, made.shape);
    Made::require(schedule::verify(programs, {made.shape}, kMin));
    benchmark::DoNotOptimize(schedule::simulate(programs, made.costs).time_span.active);
    state.PauseTiming();
    Made::count(state, programs);
    state.ResumeTiming();
  }
}

void made_verified_simulated(benchmark::State& state, const char* scheduler, int chunks) {
  make_verify_simulate(state, Made(scheduler, {kPipeline, chunks, static_cast<int>(state.range(0))}));
}

void more_ranks(benchmark::State& state, const char* scheduler) {
  make_verify_simulate(state, Made(scheduler, {static_cast<int>(state.range(0)), 1, 4}));
}

void more_chunks(benchmark::State& state, const char* scheduler, int pipeline) {
  make_verify_simulate(state, Made(scheduler, {pipeline, static_cast<int>(state.range(0)), 4}));
}

void simulated(benchmark::State& state, const char* scheduler, int chunks) {
  const Made made(scheduler, {kPipeline, chunks, static_cast<int>(state.range(0))});
  const std::vector<schedule::Program> programs = schedule::lower(made.rows(), made.shape);
  for (auto _ : state) benchmark::DoNotOptimize(schedule::simulate(programs, made.costs).time_span.active);
  Made::count(state, programs);
}

void over_microbatches(benchmark::internal::Benchmark* run) {
  run->RangeMultiplier(2)->Range(64, 512)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oN);
}

void over_stages(benchmark::internal::Benchmark* run, int most) {
  run->RangeMultiplier(4)->Range(most / 64, most)->Unit(benchmark::kMillisecond)->Complexity(benchmark::oN);
}
void over_ranks(benchmark::internal::Benchmark* run) {
  over_stages(run, schedule::kMaxRanks);
}
void over_chunks(benchmark::internal::Benchmark* run) {
  over_stages(run, 65536);
}
void over_chunks_of_four(benchmark::internal::Benchmark* run) {
  over_stages(run, 4096);
}

BENCHMARK_CAPTURE(more_ranks, one_f_one_b, "sched-1f1b")->Apply(over_ranks);
BENCHMARK_CAPTURE(more_chunks, breadth_first_p1, "sched-breadth-first", 1)->Apply(over_chunks);
BENCHMARK_CAPTURE(more_chunks, interleaved_p4, "sched-interleaved", 4)->Apply(over_chunks_of_four);
BENCHMARK_CAPTURE(made_verified_simulated, interleaved_v4, "sched-interleaved", 4)->Apply(over_microbatches);
BENCHMARK_CAPTURE(made_verified_simulated, breadth_first_v4, "sched-breadth-first", 4)->Apply(over_microbatches);
BENCHMARK_CAPTURE(made_verified_simulated, zb_v, "sched-zb-v", 2)->Apply(over_microbatches);
BENCHMARK_CAPTURE(made_verified_simulated, zb_h2, "sched-zb-h2", 1)->Apply(over_microbatches);
BENCHMARK_CAPTURE(simulated, interleaved_v4, "sched-interleaved", 4)->Apply(over_microbatches);

} // namespace

BENCHMARK_MAIN();
