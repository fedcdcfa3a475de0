// triax simulate: how long a step of a schedule takes, from the times of its passes; nothing is trained.
#include "schedule/simulate.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proved_schedule.hpp"
#include "report/json.hpp"
#include "schedule_flags.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

constexpr double kMostMs = 1e12; // thirty years, and sums of them stay exact enough

struct Arguments {
  ScheduleArguments source;
  schedule::PassTimes times;
  double link_ms = 0;
  bool json = false;
};

int refuse(const std::vector<config::Refusal>& problems, bool as_json, int status) {
  print_refusals(problems);
  std::vector<std::string> texts;
  texts.reserve(problems.size());
  for (const config::Refusal& problem : problems) texts.push_back(problem.text);
  if (as_json) std::cout << report::JsonObject().set("refusals", texts).line() << '\n';
  return status;
}

std::string to_json(const schedule::Simulation& told) {
  const nlohmann::ordered_json out = {{"makespan_ms", told.makespan_ms},
                                      {"cost_ms", told.cost_ms},
                                      {"bubble_rate", told.bubble_rate()},
                                      {"bubble_over_ideal", told.bubble_over_ideal()},
                                      {"peak_in_flight", told.peak_in_flight}};
  return out.dump();
}

std::string rounded(double value) {
  char out[64];
  std::snprintf(out, sizeof out, "%.10g", std::round(value * 1e4) / 1e4);
  return out;
}

std::string to_words(const Arguments& arguments, const ScheduleSource& source, const schedule::Simulation& told) {
  const PipelineShape& shape = source.shape;
  const schedule::PassTimes& times = arguments.times;
  std::string in_flight;
  for (const int peak : told.peak_in_flight) in_flight += text(" {}", peak);
  return text("{}: p = {}, m = {}, v = {}; F {} ms, I {} ms, W {} ms, link {} ms\n", source.scheduler.name,
              shape.pipeline, shape.microbatches, shape.chunks, times.forward_ms, times.input_ms, times.weight_ms,
              arguments.link_ms) +
         text("makespan {} ms, from the first start to the last end\n", rounded(told.makespan_ms)) +
         text("cost {} ms, the longest that a rank is there; {} ms of it are work\n", rounded(told.cost_ms),
              rounded(told.work_ms)) +
         text("bubble {} of the cost, {} over the work\n", rounded(told.bubble_rate()),
              rounded(told.bubble_over_ideal())) +
         text("peak of {} in flight, by rank:{}\n", shape.chunks > 1 ? "microbatch chunks" : "microbatches", in_flight);
}

int run(const Arguments& arguments, const ScheduleSource& source) {
  const ProvedSchedule proved = prove(source, {.evaluation = false});
  if (!proved.problems.empty()) return refuse(proved.problems, arguments.json, proved.status);
  const schedule::Simulation told = schedule::simulate(
      proved.programs,
      {std::vector<schedule::PassTimes>(static_cast<std::size_t>(source.shape.stages()), arguments.times),
       arguments.link_ms});
  std::cout << (arguments.json ? to_json(told) + '\n' : to_words(arguments, source, told));
  return kDone;
}

/// CLI11 alone would read "nan" and "inf" too.
std::string is_a_time(const std::string& written) {
  double value = 0;
  const char* end = written.data() + written.size();
  const auto [read, error] = std::from_chars(written.data(), end, value);
  if (error == std::errc() && read == end && value >= 0 && value <= kMostMs) return {}; // NaN is neither
  return text("must be a time in ms, from 0 to {}, not \"{}\"", kMostMs, written);
}

void add_times(CLI::App& verb, Arguments& arguments) {
  const auto time = [&verb](const char* name, double& value, const char* doc) {
    verb.add_option(name, value, doc)->required()->check(CLI::Validator(is_a_time, {}))->type_name("MS");
  };
  time("--forward-ms", arguments.times.forward_ms, "F: a forward of one microbatch on one stage");
  time("--input-ms", arguments.times.input_ms, "I: its input gradient");
  time("--weight-ms", arguments.times.weight_ms, "W: its weight gradient; a whole backward takes I and W together");
  time("--link-ms", arguments.link_ms, "a transfer to the next rank; it occupies neither");
}

} // namespace

void add_simulate(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("simulate", "tells how long a step of a schedule takes, after proving it");
  const auto arguments = std::make_shared<Arguments>();
  add_schedule_source(*verb, arguments->source, "the run whose schedule is simulated");
  add_times(*verb, *arguments);
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([verb, arguments, &status] {
    const schedule::PassTimes& times = arguments->times;
    if (times.forward_ms + times.input_ms + times.weight_ms == 0)
      throw CLI::ValidationError("--forward-ms, --input-ms, --weight-ms", "are all 0: there is nothing to simulate");
    status = run(*arguments, schedule_source(*verb, arguments->source));
  });
}

} // namespace triax::app
