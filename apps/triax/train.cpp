// triax train: checks a run, then trains it here.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "launch/train_here.hpp"
#include "problems.hpp"
#include "report/run_log.hpp"
#include "report/units.hpp"
#include "train/machine_memory.hpp"
#include "train/plugins.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string file;
  std::vector<config::Override> overrides;
};

/// As it works from the working folder.
std::string shown(const fs::path& path) {
  std::error_code none;
  const fs::path relative = fs::proximate(path, none);
  return none || relative.native().size() > path.native().size() ? path.string() : relative.string();
}

/// Quoted for a shell where it has to be.
std::string word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=+,:@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// This program, as it can be called again.
std::string program() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  if (none) return "triax";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::equivalent(fs::path(folder) / self.filename(), self, none)) return self.filename().string();
  return word(shown(self));
}

/// The communicators that this run's axes use; of one rank, what its axes would.
std::string communicators(const config::RunConfig& run) {
  const Layout layout = train::layout_of(run);
  std::set<std::string> used, named;
  for (const auto& [axis, choice] : run.comm) {
    named.insert(choice.name);
    if (layout.size(axis) > 1) used.insert(choice.name);
  }
  std::string out;
  for (const std::string& name : used.empty() ? named : used) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string start_line(const config::RunConfig& run, const train::Preflight& checked,
                       const train::Placement& placement) {
  const auto& parallel = run.parallel;
  return text("{}: {} parameters, pipeline {} x tensor {} x data {}; {}, {}, {}, {}, {}; {}; folder {}",
              shown(run.file), report::count_text(static_cast<double>(checked.parameters)), parallel.pipeline,
              parallel.tensor, parallel.data, run.model.name, run.kernels.name, run.optimizer.name, run.schedule.name,
              communicators(run), train::to_text(placement), shown(run.folder));
}

/// Four decimals; metrics.jsonl has them all.
std::string loss_text(double loss) {
  return to_text(std::round(loss * 1e4) / 1e4);
}

std::string result_line(const config::RunConfig& run, const train::LoopResult& result) {
  std::string line = text("trained {} step{}: loss {} to {}", result.steps, result.steps == 1 ? "" : "s",
                          loss_text(result.first_loss), loss_text(result.last_loss));
  if (result.eval_loss) line += text(", held out {}", loss_text(*result.eval_loss));
  return line + text(", {} tokens/s, metrics in {}", report::count_text(result.tokens_per_s), shown(run.log.metrics));
}

/// Twice the steps, in a folder of its own.
std::string next_line(const config::RunConfig& run, const Arguments& arguments) {
  std::string line = "next: " + program() + " train " + word(arguments.file);
  for (const config::Override& override : arguments.overrides)
    if (override.key != "train.steps" && override.key != "run.dir")
      line += " --set " + word(override.key + "=" + override.value);
  const std::string folder = shown(run.folder.parent_path() / (run.folder.filename().string() + "-longer"));
  return line + text(" --set train.steps={} --set {}", 2 * run.train.steps, word("run.dir=" + folder));
}

std::vector<config::Refusal> refusals(const config::Loaded& loaded, const train::Preflight& checked) {
  std::vector<config::Refusal> out;
  for (const Support& answer : checked.refusals) out.push_back(config::refusal(answer, loaded.values));
  return out;
}

/// Everything that is asked before a run starts.
train::Preflight ask(const config::RunConfig& run, const train::Placement& placement) {
  const auto quiet = report::make_run_log(LogLevel::warn, {}, 0);
  train::Preflight checked = train::preflight(run, placement, *quiet);
  if (!checked.refusals.empty()) return checked;
  Support answer = train::fits_in_memory(checked);
  if (!answer) checked.refusals.push_back(std::move(answer));
  return checked;
}

/// What a run writes into. Each rank has a log in the run's folder; on stderr rank 0 speaks for all, and the others
/// tell what is wrong.
struct Files {
  Files(const config::RunConfig& run, const std::string& resolved_toml, int ranks)
      : folder(train::open_run_folder(run, resolved_toml)), metrics(run.log.metrics) {
    const LogLevel level = report::parse_level(run.log.level);
    for (int rank = 0; rank < ranks; ++rank)
      logs.push_back(
          report::make_run_log(level, train::log_file(run, rank), rank, rank == 0 ? LogLevel::trace : LogLevel::warn));
  }
  std::unique_ptr<train::FolderLock> folder;
  report::MetricsFile metrics;
  std::vector<std::unique_ptr<Log>> logs;
};

std::optional<train::LoopResult> train_ranks(const config::RunConfig& run, const train::Placement& placement,
                                             Files& files) {
  const train::StopSignals signals(*files.logs.front());
  report::Progress progress = report::Progress::for_stderr(run.train.steps);
  const auto result = launch::train_here({run, placement, files.logs, signals, {&files.metrics, &progress}});
  if (!result) progress.clear(); // another rank's error may have come before the last bar
  return result;
}

int train_run(const Arguments& arguments) {
  const config::Loaded loaded = config::load(arguments.file, arguments.overrides);
  print_refusals(loaded.refusals);
  if (!loaded.run) return kRefused;
  const config::RunConfig& run = *loaded.run;
  const train::Placement placement = train::place_here(run);
  const train::Preflight checked = ask(run, placement);
  print_refusals(refusals(loaded, checked));
  if (!checked.refusals.empty()) return kRefused;

  std::optional<Files> files;
  try {
    files.emplace(run, config::to_toml(loaded), placement.ranks);
  } catch (const Error& error) { // nothing has been started
    print_problem(error.what());
    return kRefused;
  }
  files->logs.front()->info("{}", start_line(run, checked, placement));
  const std::optional<train::LoopResult> result = train_ranks(run, placement, *files);
  if (!result) return kFailed; // told by the rank that failed
  if (result->signal != 0) {
    std::cerr << text("stopped by {} after step {} of {}; metrics in {}\n",
                      result->signal == SIGINT ? "SIGINT" : "SIGTERM", result->steps, run.train.steps,
                      shown(run.log.metrics));
    return 128 + result->signal;
  }
  std::cout << result_line(run, *result) << '\n';
  std::cerr << next_line(run, arguments) << '\n';
  return kDone;
}

} // namespace

void add_train(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("train", "trains a run");
  const auto arguments = std::make_shared<Arguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->callback([arguments, &status] { status = train_run(*arguments); });
}

} // namespace triax::app
