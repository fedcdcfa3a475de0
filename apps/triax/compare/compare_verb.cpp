// SPDX-License-Identifier: Apache-2.0
// triax compare: trains two configurations in turns, and says whether one is faster.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/output_flag.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "compare/compare_report.hpp"
#include "launch/environment.hpp"
#include "os/deferred_signals.hpp"
#include "os/replace_file.hpp"
#include "os/signal_name.hpp"
#include "os/terminal.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

constexpr long long kMaxWarmUp = 1'000'000;

/// A communicator that was chosen, and has carried nothing.
void check_traffic(const LoadedSides& sides, const compare::SideResult& result, const char* side) {
  for (const std::string& axis : sides.differing_axes) {
    const auto of_axis = [&axis](const report::GroupTraffic& of) { return of.group == axis && of.bytes_out > 0; };
    if (std::ranges::any_of(result.traffic, of_axis)) continue;
    throw Error(text("side {} has sent nothing over the axis {}, whose communicator is compared", side, axis), {},
                "the layout does not use it: triax check prints the bytes of each axis");
  }
}

/// A line on a terminal that says how far the comparison is.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (terminal_.terminal) std::cerr << os::kClearLine << std::flush;
  }
  void update(std::int64_t done, std::int64_t turns) const {
    if (terminal_.terminal) std::cerr << os::kClearLine << "turn " << done << " of " << turns << std::flush;
  }

 private:
  const os::Terminal terminal_ = os::stderr_terminal();
};

compare::Compared run_sides(const CompareArguments& arguments, const LoadedSides& sides,
                            const std::function<bool()>& is_stopped) {
  compare::Plan plan = arguments.plan;
  plan.max_steps = std::min(sides.a.run().train.steps, sides.b.run().train.steps);
  const ProgressLine line;
  compare::Progress progress;
  progress.turn = [&line](std::int64_t done, std::int64_t turns) { line.update(done, turns); };
  progress.begins = [](std::int64_t turns, double seconds) {
    std::cerr << text("{} turns, about {}\n", turns, report::duration_text(seconds));
  };
  progress.warmed_up = [&sides](const compare::SideResult& a, const compare::SideResult& b) {
    check_traffic(sides, a, "A");
    check_traffic(sides, b, "B");
  };
  compare::SideRequest a = request_of(sides.a, sides.folder / "a"), b = request_of(sides.b, sides.folder / "b");
  a.is_stopped = b.is_stopped = is_stopped;
  return compare::compare_sides(a, b, plan, progress);
}

int compare_and_report(const CompareArguments& arguments, const LoadedSides& sides) {
  const os::Machine machine = os::this_machine();
  os::DeferredSignals signals;
  int caught = 0;
  const auto is_stopped = [&] {
    if (caught == 0) caught = signals.caught();
    return caught != 0;
  };
  compare::Compared compared;
  try {
    compared = run_sides(arguments, sides, is_stopped);
  } catch (const compare::Stopped&) {
    print_problem(
        text("{} before {} rounds were complete: there is no result", signal_name(caught), compare::kMinRounds),
        arguments.json);
    return 128 + caught;
  }
  const ComparisonReport report{sides, compared, arguments.plan, machine};
  const std::string json = comparison_json(report);
  result_out() << (arguments.json ? json : comparison_text(report)) << std::flush; // also if no file can be written
  os::replace_file(sides.folder / "compare.json", json);
  if (!arguments.html.empty()) write_output(comparison_html(report), arguments.html);
  return caught == 0 ? kDone : 128 + caught;
}

/// Whether a launcher has started this process.
bool is_one_rank() {
  try {
    return launch::find_environment([](const char* name) { return std::getenv(name); }).has_value();
  } catch (const Error&) { // its variables are incomplete
    return true;
  }
}

int compare_runs(const CompareArguments& arguments) {
  if (is_one_rank())
    return refuse(std::vector{config::diagnostic(
                      ErrorCode::kUnsupported, "a launcher has started this process as one rank of a job",
                      "start triax compare itself: it starts the ranks of both sides on this machine")},
                  arguments.json);
  LoadedSides sides;
  try {
    if (const std::vector<config::Diagnostic> refused = load_sides(arguments, sides); !refused.empty())
      return refuse(refused, arguments.json);
    return compare_and_report(arguments, sides);
  } catch (const compare::SideEnded& ended) {
    if (ended.refused()) return refuse(std::vector{config::diagnostic(ErrorCode::kUnsupported, ended)}, arguments.json);
    print_problem(ended.what(), arguments.json);
    return kFailed;
  } catch (const Error& error) {
    print_problem(error.what(), arguments.json);
    return kFailed;
  }
}

void add_side(CLI::App& verb, const char* name, SideArguments& side) {
  repeated(
      verb.add_option(std::string("--") + name, side.changes,
                      text("what side {} changes: a key, or a TOML file whose keys override those of RUN.toml", name))
          ->type_name("TABLE.KEY=VALUE|FILE"));
  const auto read = [&side](const std::vector<std::string>& flags) {
    for (const std::string& flag : flags)
      side.variables.push_back({flag.substr(0, flag.find('=')), flag.substr(flag.find('=') + 1)});
    return true;
  };
  const auto well_formed = [](const std::string& flag) {
    const std::size_t equals = flag.find('=');
    return equals == std::string::npos || equals == 0 ? "must be NAME=VALUE, got \"" + flag + "\"" : std::string();
  };
  repeated(verb.add_option_function<std::vector<std::string>>(std::string("--env-") + name, read,
                                                              text("sets an environment variable of side {}", name))
               ->type_name("NAME=VALUE")
               ->check(CLI::Validator(well_formed, {})));
}

void add_plan(CLI::App& verb, compare::Plan& plan) {
  verb.add_option("--rounds", plan.rounds,
                  text("rounds of A B B A or B A A B [{}]; more rounds show smaller differences", plan.rounds))
      ->type_name("N")
      ->check(integer_in(compare::kMinRounds, compare::kMaxRounds));
  verb.add_option("--warm-up", plan.warm_up, text("steps before the first turn of a side [{}]", plan.warm_up))
      ->type_name("STEPS")
      ->check(integer_in(1, kMaxWarmUp));
  verb.add_option("--turn-ms", plan.turn_ms,
                  text("time of the measured steps of a turn, if train.steps allows it [{}]", plan.turn_ms))
      ->type_name("MS")
      ->check(number_in(0, 1e6));
  verb.add_flag("--restart", plan.restarts,
                "starts a side again for each turn: for sides that do not fit in memory together");
}

} // namespace

void add_compare(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("compare", "trains two configurations in turns, and says which is faster");
  const auto arguments = std::make_shared<CompareArguments>();
  verb->add_option("RUN.toml", arguments->file, "the run of both sides")->required();
  add_side(*verb, "a", arguments->a);
  add_side(*verb, "b", arguments->b);
  add_overrides(*verb, arguments->overrides);
  add_plan(*verb, arguments->plan);
  verb->add_flag("--different-models", arguments->different_models,
                 "allows sides that differ in what they compute: only their times are compared");
  verb->add_flag("--same", arguments->same, "allows equal sides, to see how much this machine varies");
  verb->add_option("--dir", arguments->folder,
                   "folder of the comparison, new or empty [runs/NAME-compare, or that with a number]")
      ->type_name("DIR")
      ->check(not_empty());
  verb->add_flag("--json", arguments->json, "prints the result as one JSON object");
  verb->add_option("--html", arguments->html, "writes the result as a page with plots, and replaces an existing file")
      ->check(CLI::Validator(output_file_error, {}))
      ->type_name("FILE");
  verb->callback([arguments, &status] { status = compare_runs(*arguments); });
}

} // namespace triax::app
