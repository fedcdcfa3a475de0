// triax train: checks a run, then trains it here, with its ranks as threads or as processes of this machine; or is one
// of the ranks that a launcher has started (train_launched.cpp).
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/key_check.hpp"
#include "launch/train_here.hpp"
#include "launch/train_processes.hpp"
#include "problems.hpp"
#include "report/progress.hpp"
#include "report/rank_output.hpp"
#include "report/traffic.hpp"
#include "train_launched.hpp"
#include "train_text.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

std::optional<train::LoopResult> train_threads(const config::RunConfig& run, const train::Placement& placement,
                                               RunFiles& files, const std::vector<std::unique_ptr<Log>>& logs,
                                               report::Progress& progress) {
  const train::StopSignals signals(*logs.front());
  const auto step = [&progress](const report::StepRecord& record) { progress.update(record); };
  return launch::train_here({run, placement, logs, signals, {&files.metrics, step}});
}

/// Rank 0 writes the metrics; that it can has been seen as they were opened here.
std::optional<train::LoopResult> train_processes(const config::RunConfig& run, const TrainArguments& arguments,
                                                 Log& log, report::Progress& progress) {
  const train::StopSignals signals(log);
  report::RankOutput output = report::RankOutput::for_stderr();
  std::vector<std::string> words = {"train", arguments.file};
  for (const config::Override& override : arguments.overrides) {
    words.emplace_back("--set");
    words.push_back(override.key + "=" + override.value);
  }
  const auto step = [&progress](const report::StepRecord& record) { progress.update(record); };
  const auto line = [&output](int rank, const std::string& written) { output.write(rank, written); };
  return launch::train_processes({run, words, log, signals, step, line});
}

/// Ranks that are processes open their logs themselves.
std::vector<std::unique_ptr<Log>> make_logs(const config::RunConfig& run, const train::Placement& placement) {
  if (placement.ranks_are_threads) return rank_logs(run, placement.ranks);
  std::vector<std::unique_ptr<Log>> out;
  out.push_back(launcher_log(run));
  return out;
}

int train_ranks(const TrainArguments& arguments, const config::RunConfig& run, const train::Preflight& checked,
                const train::Placement& placement, RunFiles& files, const std::vector<std::unique_ptr<Log>>& logs) {
  logs.front()->info("{}", start_line(run, checked, placement));
  for (const std::string& note : notes(run)) logs.front()->warn("{}", note);
  report::Progress progress = report::Progress::for_stderr(run.train.steps);
  std::optional<train::LoopResult> result;
  try {
    result = placement.ranks_are_threads ? train_threads(run, placement, files, logs, progress)
                                         : train_processes(run, arguments, *logs.front(), progress);
  } catch (const Error& error) { // no rank has been started, or those that were have been ended at once
    print_problem(error.what());
    return kRefused;
  }
  if (!result) {
    progress.clear(); // a rank's error may have come before the last bar
    return kFailed;   // told by the rank that failed
  }
  progress.finish();
  return tell_result(run, arguments, *result);
}

int train_run(const TrainArguments& arguments) {
  std::optional<launch::Environment> environment;
  try {
    environment = launch::find_environment([](const char* name) { return std::getenv(name); });
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  if (environment) return train_launched(arguments, *environment);
  const config::Loaded loaded = config::load(arguments.file, arguments.overrides);
  print_refusals(loaded.refusals);
  if (!loaded.run) return kRefused;
  const train::Placement placement = train::place_here(*loaded.run);
  std::error_code none;
  if (!placement.ranks_are_threads && !std::filesystem::is_regular_file(arguments.file, none)) {
    print_problem(text("{}: every rank reads the run for itself, so it has to be a file", arguments.file));
    return kRefused;
  }
  train::Preflight checked = ask(*loaded.run, placement, {0, placement.ranks});
  if (!placement.ranks_are_threads)
    for (Support& answer : launch::check_keys(loaded.run->launch)) checked.refusals.push_back(std::move(answer));
  print_refusals(refusals(loaded, checked));
  if (!checked.refusals.empty()) return kRefused;

  std::optional<RunFiles> files;
  std::vector<std::unique_ptr<Log>> logs;
  try {
    files.emplace(loaded);
    logs = make_logs(*loaded.run, placement);
  } catch (const Error& error) { // nothing has been started
    print_problem(error.what());
    return kRefused;
  }
  return train_ranks(arguments, *loaded.run, checked, placement, *files, logs);
}

} // namespace

int tell_result(const config::RunConfig& run, const TrainArguments& arguments, const train::LoopResult& result) {
  if (result.signal != 0) {
    std::cerr << stop_line(run, result) << '\n';
    return 128 + result.signal;
  }
  std::cout << result_line(run, result) << '\n';
  if (const std::string moved = report::traffic_text(result.traffic); !moved.empty()) std::cerr << moved << '\n';
  std::cerr << next_line(run, arguments.file, arguments.overrides) << '\n';
  return kDone;
}

void add_train(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("train", "trains a run");
  const auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->callback([arguments, &status] { status = train_run(*arguments); });
}

} // namespace triax::app
