// One rank of a job. What speaks against the run is told once: by rank 0, and by another rank only where it says
// something else (a file that is missing on its machine). Then no rank starts.
#include "train_launched.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "launch/child.hpp"
#include "launch/train_process.hpp"
#include "problems.hpp"
#include "report/progress.hpp"
#include "train/cores.hpp"
#include "train_text.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

class LaunchedRank {
 public:
  LaunchedRank(const TrainArguments& arguments, const launch::Environment& environment)
      : arguments_(arguments),
        environment_(environment),
        ours_(environment.launcher == launch::Launcher::triax),
        placement_{environment.local_world, train::available_cores(), false},
        loaded_(config::load(arguments.file, arguments.overrides, environment.world)) {}

  int run() {
    refuse(loaded_.refusals);
    if (loaded_.run && speaks()) check();
    // Before the first thread, so that all of them leave the signals alone.
    train::StopSignals signals(quiet_, ours_ ? train::StopSignals::From::launcher : train::StopSignals::From::user);
    signals.end_at_once(!ours_);
    std::optional<launch::Job> job;
    try {
      job.emplace(launch::JobRequest{environment_, loaded_.launch, stall_timeout_s()}, signals);
    } catch (const Error& error) { // nobody can come
      print_problem(refused_.empty() ? rank_text() + error.what() : refused_);
      return kRefused;
    }
    return run(*job, signals);
  }

 private:
  int run(launch::Job& job, train::StopSignals& signals) {
    try {
      job.enter();
      if (const std::optional<std::string> refusal = job.refusal({refused_, keys()})) {
        if (!refusal->empty()) print_problem(*refusal);
        job.leave();
        return kRefused;
      }
      return train(job, signals);
    } catch (const Error& error) {
      return fail(job, error);
    }
  }

  /// Of a rank that waits for others or opens its files; what goes wrong in training is told there.
  int fail(launch::Job& job, const Error& error) {
    control::AbortFlag& flag = job.abort();
    const bool first = flag.raise(environment_.rank, error.what()) || flag.rank() < 0;
    if (!refused_.empty()) {
      print_problem(refused_);
    } else if (first) { // else another rank tells why
      print_problem(rank_text() + error.what());
    }
    try {
      job.leave();
    } catch (const Error&) { // nobody is there to be told
      return refused_.empty() ? kFailed : kRefused;
    }
    return refused_.empty() ? kFailed : kRefused;
  }

  /// Rank 0 of a job that others have started: our own launcher has asked before it started any.
  bool speaks() const { return environment_.rank == 0 && !ours_; }
  /// Our launcher puts it in front of what its ranks write.
  std::string rank_text() const { return ours_ ? std::string() : text("rank {}: ", environment_.rank); }
  double stall_timeout_s() const { return loaded_.run ? loaded_.run->train.stall_timeout_s : 600; }

  void refuse(const std::vector<config::Refusal>& refusals) {
    for (const config::Refusal& refusal : refusals) refused_ += (refused_.empty() ? "" : "\n") + refusal.text;
  }

  /// What must be the same on all ranks: not where files are.
  std::map<std::string, std::string> keys() const {
    std::map<std::string, std::string> out;
    if (!loaded_.run) return out;
    for (const config::ResolvedValue& value : loaded_.values) {
      const std::string table = value.key.substr(0, value.key.find('.'));
      if (table != "run" && table != "data" && table != "log" && table != "plugins" && table != "launch")
        out[value.key] = value.value;
    }
    return out;
  }

  void check() {
    checked_ = ask(*loaded_.run, placement_, {environment_.local_rank, 1}); // each rank asks for its own
    refuse(refusals(loaded_, checked_));
    if (!refused_.empty()) return;
    try {
      files_.emplace(loaded_);
    } catch (const Error& error) {
      refused_ = error.what();
    }
  }

  int train(launch::Job& job, train::StopSignals& signals) {
    const config::RunConfig& run = *loaded_.run;
    const auto log = make_log(run);
    if (speaks()) {
      log->info("{}", start_line(run, checked_, placement_));
      for (const std::string& note : notes(run)) log->warn("{}", note);
    }
    report::Progress progress = report::Progress::for_stderr(run.train.steps);
    std::optional<report::MetricsFile> metrics;
    if (environment_.rank == 0 && !files_) metrics.emplace(run.log.metrics);
    train::Reports reports;
    if (environment_.rank == 0) reports.metrics = files_ ? &files_->metrics : &*metrics;
    if (speaks()) reports.step = [&progress](const report::StepRecord& record) { progress.update(record); };
    const std::optional<train::LoopResult> result = launch::train_process(
        {run, environment_, job, placement_.threads_per_rank(), *log, signals, std::move(reports)});
    if (!result) {
      progress.clear();
      return kFailed;
    }
    progress.finish();
    if (speaks()) return tell_result(run, arguments_, *result);
    return result->signal == 0 || ours_ ? kDone : 128 + result->signal;
  }

  std::unique_ptr<Log> make_log(const config::RunConfig& run) const {
    std::filesystem::create_directories(run.folder); // another machine's ranks may have a folder of their own
    return report::make_run_log(report::parse_level(run.log.level), train::log_file(run, environment_.rank),
                                environment_.rank, {speaks() ? LogLevel::trace : LogLevel::warn, !ours_});
  }

  const TrainArguments& arguments_;
  const launch::Environment& environment_;
  const bool ours_;
  const train::Placement placement_;
  const config::Loaded loaded_;
  std::string refused_;
  train::Preflight checked_;
  std::optional<RunFiles> files_;
  Log& quiet_ = null_log();
};

} // namespace

int train_launched(const TrainArguments& arguments, const launch::Environment& environment) {
  if (environment.launcher == launch::Launcher::triax)
    launch::end_with_parent(static_cast<pid_t>(std::atoi(std::getenv("TRIAX_LAUNCHER"))));
  return LaunchedRank(arguments, environment).run();
}

} // namespace triax::app
