// SPDX-License-Identifier: Apache-2.0
// triax check: runs all checks before training.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "check/check_report.hpp"
#include "common/errors_out.hpp"
#include "common/resolved_split.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "launch/key_check.hpp"
#include "os/terminal.hpp"
#include "report/run_log.hpp"
#include "train/machine_memory.hpp"
#include "train/offload_file.hpp"
#include "train/preflight_process.hpp"

namespace triax::app {

namespace {

struct CheckArguments {
  std::string file;
  std::vector<config::Override> overrides;
  bool no_device = false, json = false, all = false;
  std::string memory; // as written
};

CheckReport check(const CheckArguments& arguments) {
  CheckReport report{arguments.file,
                     with_split(config::load(arguments.file, arguments.overrides, {},
                                             arguments.no_device ? config::Purpose::plan : config::Purpose::train)),
                     {},
                     {},
                     {}};
  report.checked_devices = !arguments.no_device;
  if (!arguments.memory.empty()) report.limit = parse_memory_limit(arguments.memory);
  report.refusals = report.loaded.refusals;
  if (!report.loaded.run) return report;
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  const auto devices = [&arguments](const train::Placement& placement) {
    return train::CheckedDevices{0, arguments.no_device ? 0 : placement.ranks};
  };
  train::CheckedRun checked = train::preflight_in_child(*report.loaded.run, *log, {std::nullopt, devices});
  report.placement = checked.placement;
  report.preflight = std::move(checked.preflight);
  const auto refuse = [&report](const Refusals& refusals) {
    for (Refusal refusal : refusals) {
      if (refusal.code == ErrorCode::kNoDevice)
        refusal.hint +=
            text("{}triax check --no-device skips the checks of this machine", refusal.hint.empty() ? "" : "; ");
      report.refusals.push_back(config::diagnose(refusal, report.loaded.values));
    }
  };
  refuse(report.preflight.refusals);
  if (report.limit) refuse(fits(*report.limit, *report.loaded.run, report.preflight));
  if (arguments.no_device) return report;
  if (!report.placement.ranks_are_threads) refuse(launch::check_keys(report.loaded.run->launch));
  if (report.refusals.empty()) refuse(train::fits_in_memory(report.preflight, report.placement));
  if (report.refusals.empty())
    refuse(train::check_offload_folder(*report.loaded.run, report.preflight, report.placement));
  return report;
}

} // namespace

void add_check(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("check", "checks a run without starting it: values, plugins, layout, memory");
  const auto arguments = std::make_shared<CheckArguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--no-device", arguments->no_device,
                 "checks a run for another machine: devices, memory, data and plugins for GPUs may be missing here");
  verb->add_option("--memory", arguments->memory, "fails if a rank needs more device memory than this, such as 80GiB")
      ->check(CLI::Validator(is_memory_limit, {}))
      ->type_name("SIZE");
  verb->add_flag("--all", arguments->all, "prints all values and all ranks, even if there are many");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] {
    const CheckReport report = check(*arguments);
    print_errors(report.refusals);
    const bool accepted = report.refusals.empty();
    if (arguments->json) {
      result_out() << to_json(report) << '\n';
    } else if (accepted) {
      const os::Terminal to = os::stdout_terminal();
      result_out() << to_text(report, {to.colour, to.terminal ? to.columns : 0, arguments->all});
    }
    status = accepted ? kDone : kRefused;
  });
}

} // namespace triax::app
