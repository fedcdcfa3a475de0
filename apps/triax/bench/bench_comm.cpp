// SPDX-License-Identifier: Apache-2.0
// triax bench comm: measures a communicator, or compares two. Its ranks are threads or processes of this machine, or
// this process is one of the ranks that a launcher has started.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_verbs.hpp"
#include "bench/comm_arguments.hpp"
#include "bench/comm_processes.hpp"
#include "bench/comm_report.hpp"
#include "bench/comm_threads.hpp"
#include "bench/rank_process.hpp"
#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "common/verbs.hpp"
#include "control/server.hpp"
#include "os/child_process.hpp"
#include "os/machine.hpp"
#include "report/rank_output.hpp"
#include "report/run_log.hpp"

namespace triax::app {

namespace {

/// No launcher has started this process: it starts the ranks.
int measure_here(const CommArguments& arguments) {
  RequestedComm requested = read_comm(arguments, std::nullopt, plugin::FirstLoad::probed);
  bench::RankMode mode;
  if (requested.refusals.empty())
    mode = bench::choose_rank_mode(requested.plan, requested.kernels_choice(), false, requested.refusals);
  if (requested.refusals.empty() && mode.device == DeviceKind::host)
    requested.refusals.add(bench::check_memory(requested.plan, requested.plan.ranks, os::this_machine().free_bytes));
  if (requested.refusals.empty() && !mode.ranks_are_threads)
    if (const std::optional<Error> error = control::open_files_error(requested.plan.ranks))
      requested.refusals.add(
          make_refusal(ErrorCode::kTooLarge, {"--ranks"}, "{}", error->message()).with_hint("{}", error->hint()));
  if (requested.refusals.empty()) check_output(arguments.sides.output, requested.refusals);
  if (!requested.refusals.empty()) return refuse(requested.refusals, arguments.sides.json);
  const bench::CommPlan& plan = requested.plan;
  CommReport report(plan, mode, arguments.sides);
  const auto add = [&report](const bench::SizeResult& result) { report.add(result); };
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, report::kLauncher);
  report.begin();
  try {
    if (mode.ranks_are_threads) {
      bench::measure_threads(plan, requested.kernels_choice(), add, *log);
    } else {
      report::RankOutput output = report::RankOutput::for_stderr();
      const auto line = [&output](int rank, const std::string& written) { output.write(rank, written); };
      if (const int signal = bench::measure_processes({plan, rank_arguments(arguments, plan.ranks), add, line, *log}))
        return 128 + signal;
    }
  } catch (const Error& error) {
    print_problem(error.what(), arguments.sides.json);
    return kFailed;
  }
  return report.end();
}

/// A launcher has started this process as a rank.
int measure_as_rank(const CommArguments& arguments, const launch::Environment& environment) {
  const bool ours = environment.launcher == launch::Launcher::triax; // it has checked the plan
  if (ours) os::end_with_parent(environment.launcher_process);
  RequestedComm requested =
      read_comm(arguments, environment.world, ours ? plugin::FirstLoad::direct : plugin::FirstLoad::probed);
  bench::RankMode mode;
  if (!ours && requested.refusals.empty())
    mode = bench::choose_rank_mode(requested.plan, requested.kernels_choice(), true, requested.refusals);
  // Only local rank 0 checks: ranks would report different free memory.
  if (!ours && environment.local_rank == 0 && requested.refusals.empty() && mode.device == DeviceKind::host)
    requested.refusals.add(bench::check_memory(requested.plan, environment.local_world, os::this_machine().free_bytes));
  const bool is_reporter = !ours && environment.rank == 0;
  if (is_reporter && requested.refusals.empty()) check_output(arguments.sides.output, requested.refusals);
  std::string refused;
  for (const config::Diagnostic& error : diagnostics_of(requested.refusals))
    refused += (refused.empty() ? "" : "\n") + error.text;

  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, environment.rank, {.names_rank = !ours});
  std::optional<CommReport> report;
  bench::ProcessRequest request{environment};
  request.plan = &requested.plan;
  request.kernels = requested.kernels_choice();
  request.log = log.get();
  request.timeout_s = arguments.timeout_s;
  request.refused = refused;
  request.keys = keys_of(arguments, environment.world);
  if (is_reporter)
    request.report = [&](const bench::SizeResult& result) {
      if (!report) report.emplace(requested.plan, mode, arguments.sides).begin();
      report->add(result);
    };
  request.print = [&](const std::string& problem) { print_problem(problem, arguments.sides.json && is_reporter); };
  try {
    const bench::ProcessEnd end = bench::measure_process(request);
    if (end != bench::ProcessEnd::done) return end == bench::ProcessEnd::refused ? kRefused : kFailed;
  } catch (const Error& error) { // no rank can join
    request.print(error.what());
    return kRefused;
  }
  return report ? report->end() : kDone;
}

int bench_comm(const CommArguments& arguments) {
  std::optional<launch::Environment> environment;
  try {
    environment = launch::find_environment([](const char* name) { return std::getenv(name); });
  } catch (const Error& error) {
    print_problem(error.what(), arguments.sides.json);
    return kRefused;
  }
  if (!environment) return measure_here(arguments);
  if (const Refusals conflict = check_world(arguments, environment->world); !conflict.empty()) {
    if (environment->rank == 0) refuse(conflict, arguments.sides.json); // the command line is that of all ranks
    return kRefused;
  }
  return measure_as_rank(arguments, *environment);
}

} // namespace

void add_bench_comm(CLI::App& bench, int& status) {
  CLI::App* const verb = bench.add_subcommand("comm", "measures a communicator, or compares two");
  const std::shared_ptr<CommArguments> arguments = add_comm_flags(*verb);
  verb->callback([arguments, &status] { status = bench_comm(*arguments); });
}

} // namespace triax::app
