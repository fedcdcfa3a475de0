// SPDX-License-Identifier: Apache-2.0
// triax train: checks a run, then trains it with ranks as threads or processes of this machine. Or it is one of the
// ranks that a launcher has started (train_launched.cpp). `triax evaluate` starts ranks in the same way.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/result_out.hpp"
#include "common/unknown_variables.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "launch/key_check.hpp"
#include "launch/run_threads.hpp"
#include "launch/spawn_workers.hpp"
#include "os/ending_signals.hpp"
#include "report/progress.hpp"
#include "report/rank_output.hpp"
#include "train/metrics_lock.hpp"
#include "train/restarted_run.hpp"
#include "train/train_launched.hpp"
#include "train/train_result.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

constexpr int kMaxRestarts = 1'000'000;

/// Shared by all parts of a local run.
struct LocalRun {
  const TrainArguments& arguments;
  const config::LoadResult& loaded;
  const train::Placement& placement;
  const train::RunFolder* folder; // null: the run writes no files
  const std::vector<std::unique_ptr<Log>>& logs;
  report::Progress& progress;
  const launch::OnFailure& failed;
  const os::StopSignals& signals;
  const std::function<int(const train::LoopResult&)>& ends_at_start;
  TrainedSteps& trained;

  const config::RunConfig& run() const { return *loaded.run; }
  Log& log() const { return *logs.front(); }
  auto step() const {
    return [this](const report::StepRecord& record) {
      const bool first = trained.add(record.step);
      if (first && arguments.supervised) arguments.supervised->send(std::string(kBegunMessage) + '\n');
      progress.update(record);
    };
  }
};

std::optional<train::LoopResult> train_threads(const LocalRun& here) {
  train::RunRecords records(here.run(), config::to_toml(here.loaded), here.log());
  const auto note = [&here](const std::string& line) { here.log().info("{}", line); };
  report::StartProgress start = report::StartProgress::for_stderr();
  const auto starting = [&start](const report::StartState& state) { start.update(state); };
  return launch::run_threads({here.run(),
                              here.placement,
                              here.logs,
                              here.signals,
                              {here.folder ? &records : nullptr, here.step(), note, here.arguments.restart.began},
                              {},
                              nullptr,
                              here.failed,
                              here.folder,
                              starting,
                              here.ends_at_start});
}

/// The rest of train.time_limit after earlier starts of the run.
std::string time_left(double limit_s, Clock::time_point began) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - began).count();
  return text("{}s", static_cast<std::int64_t>(std::max(1.0, limit_s - elapsed)));
}

std::vector<std::string> rank_arguments(const TrainArguments& arguments, const config::RunConfig& run) {
  std::vector<std::string> out = {arguments.evaluates ? "evaluate" : "train"};
  if (!arguments.checkpoint.empty()) out.insert(out.end(), {"--checkpoint", arguments.checkpoint});
  for (const config::Override& override : arguments.overrides) {
    out.emplace_back("--set");
    out.push_back(override.key + "=" + override.value);
  }
  if (arguments.restart.number > 0 && run.train.time_limit_s > 0)
    out.insert(out.end(), {"--set", "train.time_limit=" + time_left(run.train.time_limit_s, arguments.restart.began)});
  out.insert(out.end(), {"--", arguments.file}); // the file name may begin with '-'
  return out;
}

/// Rank 0 writes the records.
std::optional<train::LoopResult> train_processes(const LocalRun& here) {
  report::RankOutput output = report::RankOutput::for_stderr();
  const auto line = [&output](int rank, const std::string& written) { output.write(rank, written); };
  report::StartProgress start = report::StartProgress::for_stderr();
  const auto starting = [&start](const report::StartState& state) { start.update(state); };
  return launch::spawn_workers({here.run(), rank_arguments(here.arguments, here.run()), here.folder, here.log(),
                                here.signals, here.step(), line, here.failed, starting});
}

/// Rank processes open their own logs.
std::vector<std::unique_ptr<Log>> make_logs(const config::RunConfig& run, const train::Placement& placement) {
  if (placement.ranks_are_threads) return rank_logs(run, placement.ranks);
  std::vector<std::unique_ptr<Log>> out;
  out.push_back(launcher_log(run));
  return out;
}

/// The files and logs of a run while it trains. A run that evaluates has no files.
struct RunFiles {
  std::optional<train::RunFolder> folder;
  std::optional<train::MetricsLock> metrics;
  std::vector<std::unique_ptr<Log>> logs;
  /// Before the process ends without destructors.
  void remove_lock() const {
    if (metrics) metrics->remove_file();
  }
};

config::Diagnostic unsupported(const Error& error) {
  return config::diagnostic(ErrorCode::kUnsupported, error);
}

int train_ranks(const TrainArguments& arguments, const config::LoadResult& loaded, const train::CheckedRun& asked,
                RunFiles& files, os::StopSignals& signals) {
  const config::RunConfig& run = *loaded.run;
  const std::vector<std::unique_ptr<Log>>& logs = files.logs;
  const os::StopSignalLog signals_to(signals, *logs.front(), run.evaluates ? os::kEndOfBatch : os::kEndOfStep);
  if (const Restart& restart = arguments.restart; restart.number > 0)
    logs.front()->warn("restart {} of {}: {}", restart.number, restart.max,
                       restart.reason.substr(0, restart.reason.find('\n')));
  log_start(*logs.front(), run, asked.preflight, asked.placement);
  report::Progress progress = report::Progress::for_stderr(run.train.steps);
  const TrainReport report(arguments);
  const launch::OnFailure failed = [&](int rank, const std::string& why, int status) {
    report.failed(run, rank, why, status);
  };
  const std::function<int(const train::LoopResult&)> ends_at_start = [&](const train::LoopResult& stopped) {
    files.remove_lock();
    const int status = report.ended(run, stopped);
    result_out().flush();
    return status;
  };
  TrainedSteps trained;
  const os::BeforeEnd before_end(signals, [&](int signal) {
    files.remove_lock();
    report.ended_at_once(run, signal, trained);
  });
  const LocalRun here{arguments,     loaded,   asked.placement, files.folder ? &*files.folder : nullptr,
                      logs,          progress, failed,          signals,
                      ends_at_start, trained};
  std::optional<train::LoopResult> result;
  try {
    result = asked.placement.ranks_are_threads ? train_threads(here) : train_processes(here);
  } catch (const Error& error) { // no rank was started, or all were ended at once
    return report.refused({unsupported(error)});
  }
  if (!result) {
    progress.clear();                  // a rank's error may have been printed before the last bar
    return report.failed(run, -1, {}); // prints nothing if a rank was named
  }
  progress.finish();
  for (const std::unique_ptr<Log>& log : logs) result->missing.log_lines += report::lost_lines(*log);
  return report.ended(run, *result);
}

/// The errors that prevent the run. `asked` is set if there is a run.
std::vector<config::Diagnostic> check_run(const TrainArguments& arguments, const config::LoadResult& loaded,
                                          train::CheckedRun& asked) {
  if (!loaded.run) return loaded.refusals;
  try {
    const auto devices = [](const train::Placement& on) { return train::CheckedDevices{0, on.ranks}; };
    asked = ask(*loaded.run, {std::nullopt, devices});
  } catch (const Error& error) { // the checks cannot be run
    return {unsupported(error)};
  }
  auto& [placement, checked] = asked;
  if (!placement.ranks_are_threads && config::is_piped(arguments.file))
    return {config::diagnostic(
        ErrorCode::kUnsupported,
        text("{}: is standard input or a pipe, but each of the {} rank processes reads the TOML itself", arguments.file,
             placement.ranks),
        "write it to a file, or use comm-local, whose ranks are threads of this process")};
  if (!placement.ranks_are_threads) checked.refusals.add(launch::check_keys(loaded.run->launch));
  if (checked.refusals.empty()) return {};
  return refusals(loaded, checked);
}

/// Throws Error with a file that cannot be written.
void open_files(const TrainArguments& arguments, const config::LoadResult& loaded, const train::Placement& placement,
                RunFiles& files) {
  if (!arguments.evaluates) {
    files.folder.emplace(*loaded.run, config::to_toml(loaded));
    files.metrics.emplace(loaded.run->log.metrics);
  }
  files.logs = make_logs(*loaded.run, placement);
}

} // namespace

int run_ranks(const TrainArguments& arguments) {
  const TrainReport report(arguments);
  std::optional<launch::Environment> environment;
  try {
    environment = launch::find_environment([](const char* name) { return std::getenv(name); });
  } catch (const Error& error) {
    if (!is_other_rank()) return report.refused({config::diagnostic(ErrorCode::kMalformed, error)});
    print_problem(error.what()); // may be wrong only for this rank; rank 0 prints the object of --json
    return kRefused;
  }
  if (environment) return train_launched(arguments, *environment);
  std::optional<os::EndingSignals> ending; // until there is a run that can be stopped
  if (arguments.json)
    ending.emplace(result_descriptor(), [&report](int signal) { return report.ended_before(signal); });
  const config::LoadResult loaded = load_run(arguments);
  train::CheckedRun asked;
  if (const std::vector<config::Diagnostic> refused = check_run(arguments, loaded, asked); !refused.empty())
    return report.refused(refused);

  std::optional<os::StopSignals> signals; // before the files: a signal must not leave a lock file
  try {
    signals.emplace(os::StopSignals::From::user, arguments.supervised ? arguments.supervised->supervisor() : 0);
    ending.reset();
  } catch (const Error& error) { // no thread
    return report.refused({unsupported(error)});
  }
  RunFiles files;
  try {
    open_files(arguments, loaded, asked.placement, files);
  } catch (const Error& error) { // nothing was started
    return report.refused({config::diagnostic(ErrorCode::kNotWritable, error)});
  }
  return train_ranks(arguments, loaded, asked, files, *signals);
}

void add_train(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("train", "trains a model");
  const auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--json", arguments->json, "prints the result as one JSON object");
  const auto fresh = std::make_shared<bool>(false);
  verb->add_flag("--fresh", *fresh, "begins at step 1; checkpoints and metrics of an earlier run are moved aside");
  const auto restarts = std::make_shared<int>(0);
  verb->add_option(
          "--max-restarts", *restarts,
          "maximum number of restarts from the last checkpoint after a rank or the launcher fails or is lost [0]")
      ->type_name("N")
      ->check(integer_in(0, kMaxRestarts));
  verb->callback([arguments, fresh, restarts, &status] {
    if (*fresh) arguments->overrides.push_back({"checkpoint.resume", "never"});
    status = *restarts > 0 ? train_with_restarts(*arguments, *restarts, run_ranks) : run_ranks(*arguments);
  });
}

} // namespace triax::app
