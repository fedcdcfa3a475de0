// triax check: everything short of training.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "check_report.hpp"
#include "launch/key_check.hpp"
#include "report/run_log.hpp"
#include "report/terminal.hpp"
#include "table.hpp"
#include "train/machine_memory.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

struct Arguments {
  std::string file;
  std::vector<config::Override> overrides;
  bool no_device = false, json = false;
};

CheckReport check(const Arguments& arguments) {
  CheckReport report{arguments.file, config::load(arguments.file, arguments.overrides), {}, {}, {}};
  report.asked_devices = !arguments.no_device;
  report.refusals = report.loaded.refusals;
  if (!report.loaded.run) return report;
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  report.placement = train::place_here(*report.loaded.run);
  report.preflight = train::preflight(*report.loaded.run, report.placement, *log,
                                      {0, arguments.no_device ? 0 : report.placement.ranks});
  for (const Support& answer : report.preflight.refusals) {
    report.refusals.push_back(config::refusal(answer, report.loaded.values));
  }
  if (arguments.no_device) return report;
  if (!report.placement.ranks_are_threads) {
    for (const Support& answer : launch::check_keys(report.loaded.run->launch))
      report.refusals.push_back(config::refusal(answer, report.loaded.values));
  }
  if (!report.refusals.empty()) return report;
  if (const Support answer = train::fits_in_memory(report.preflight, report.placement); !answer) {
    report.refusals.push_back(config::refusal(answer, report.loaded.values));
  }
  return report;
}

} // namespace

void add_check(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("check", "checks a run without starting it: values, plugins, layout, memory");
  const auto arguments = std::make_shared<Arguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--no-device", arguments->no_device, "leaves out what only this machine may lack");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] {
    const CheckReport report = check(*arguments);
    print_refusals(report.refusals);
    const bool accepted = report.refusals.empty();
    if (arguments->json) {
      std::cout << to_json(report) << '\n';
    } else if (accepted) {
      std::cout << to_text(report, report::stdout_terminal().colour);
    }
    status = accepted ? kDone : kRefused;
  });
}

} // namespace triax::app
