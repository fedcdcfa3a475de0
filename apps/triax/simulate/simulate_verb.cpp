// SPDX-License-Identifier: Apache-2.0
// triax simulate: predicts the time of a step from the times of its passes.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/missing_flags.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "schedule/pass_flags.hpp"
#include "schedule/schedule_drawing.hpp"
#include "schedule/schedule_flags.hpp"
#include "schedule/simulate.hpp"
#include "schedule/verified_schedule.hpp"

namespace triax::app {

namespace {

struct SimulateCommand {
  ScheduleArguments source;
  PassFlags passes;
  schedule::StageTimes stage;
  bool json = false;
};

std::string to_json(const schedule::Simulation& simulation) {
  const nlohmann::ordered_json out = {{"makespan_ms", simulation.makespan_ms()},
                                      {"step_ms", simulation.step_ms},
                                      {"active_ms", simulation.time_span.active},
                                      {"bubble_rate", simulation.time_span.bubble_rate()},
                                      {"bubble_over_ideal", simulation.time_span.bubble_over_work()},
                                      {"peak_in_flight", simulation.peak_in_flight}};
  return out.dump();
}

std::string rounded(double value) {
  char out[64];
  std::snprintf(out, sizeof out, "%.10g", std::round(value * 1e4) / 1e4);
  return out;
}

/// Empty if only passes and links take time.
std::string step_text(const SimulateCommand& arguments, const schedule::Simulation& simulation) {
  const auto& [reduce_ms, optimizer_ms, gather_ms] = arguments.stage;
  if (reduce_ms == 0 && optimizer_ms == 0 && gather_ms == 0) return {};
  std::string out = text("step {} ms; per stage: gradient reduction {} ms, optimizer step {} ms",
                         rounded(simulation.step_ms), reduce_ms, optimizer_ms);
  if (gather_ms > 0) out += text(", parameter gather {} ms", gather_ms);
  return out + '\n';
}

std::string to_text(const SimulateCommand& arguments, const ScheduleSource& source,
                    const schedule::Simulation& simulation) {
  const PipelineShape& shape = source.shape;
  std::string in_flight;
  for (const int peak : simulation.peak_in_flight) in_flight += text(" {}", peak);
  return text("{}; {}\n", name_and_shape(source), to_text(arguments.passes)) +
         text("makespan {} ms, from the first start to the last end\n", rounded(simulation.makespan_ms())) +
         step_text(arguments, simulation) +
         text("active time {} ms, the longest of a rank; work {} ms\n", rounded(simulation.time_span.active),
              rounded(simulation.time_span.work)) +
         text("bubble / active time {}; bubble / work {}\n", rounded(simulation.time_span.bubble_rate()),
              rounded(simulation.time_span.bubble_over_work())) +
         text("peak of {} in flight, by rank:{}\n", shape.chunks > 1 ? "microbatch chunks" : "microbatches", in_flight);
}

int run(const SimulateCommand& arguments, const ScheduleSource& source) {
  if (arguments.stage.gather_ms > 0 && source.sharding == schedule::Sharding::none)
    throw CLI::ValidationError("--gather-ms", "needs a run whose optimizer.shard is not \"none\"; leave it out");
  const VerifiedSchedule verified =
      verify_schedule(source, {.evaluation = false, .recomputes = arguments.passes.recomputes()});
  if (!verified.problems.empty()) return refuse(verified.problems, arguments.json, verified.status);
  print_notes(source);
  schedule::Costs costs = costs_of(arguments.passes, source.shape.stages());
  costs.stages.assign(costs.times.size(), arguments.stage);
  const schedule::Simulation simulation = schedule::simulate(verified.programs, costs);
  result_out() << (arguments.json ? to_json(simulation) + '\n' : to_text(arguments, source, simulation));
  return kDone;
}

} // namespace

void add_simulate(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("simulate", "verifies a schedule and predicts its step time");
  const auto arguments = std::make_shared<SimulateCommand>();
  add_schedule_source(*verb, arguments->source, "the run whose schedule is simulated");
  add_pass_flags(*verb, arguments->passes);
  add_stage_flags(*verb, arguments->stage);
  for (const char* name : kPassFlags) verb->get_option(name)->type_name("MS REQUIRED"); // checked below
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([verb, arguments, &status] {
    require_nothing({missing_passes(*verb, {std::begin(kPassFlags), std::end(kPassFlags)}), missing_source(*verb)});
    require_some_time(arguments->passes);
    status = run(*arguments, schedule_source(*verb, arguments->source));
  });
}

} // namespace triax::app
