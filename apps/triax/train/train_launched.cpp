// SPDX-License-Identifier: Apache-2.0
// One rank of a job that trains or evaluates. Rank 0 prints the errors of the run. Another rank prints only errors that
// differ from rank 0's, such as a file that is missing on its machine. If there are errors, no rank starts.
#include "train/train_launched.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "data/content_summary.hpp"
#include "launch/worker.hpp"
#include "os/child_process.hpp"
#include "os/cpu_quota.hpp"
#include "os/ending_signals.hpp"
#include "report/progress.hpp"
#include "train/metrics_lock.hpp"
#include "train/train_result.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

class LaunchedRank {
 public:
  LaunchedRank(const TrainArguments& arguments, const launch::Environment& environment)
      : arguments_(arguments),
        environment_(environment),
        ours_(environment.launcher == launch::Launcher::triax),
        report_(arguments),
        placement_{environment.local_world, os::available_cores(), false},
        loaded_(load()) {}

  int run() {
    refuse(loaded_.refusals);
    std::optional<os::EndingSignals> ending; // until there is a run that can be stopped
    if (arguments_.json && speaks())
      ending.emplace(result_descriptor(), [this](int signal) { return report_.ended_before(signal); });
    if (loaded_.run && speaks()) check();
    // Before the first thread, so that all threads block these signals.
    os::StopSignals signals(ours_ ? os::StopSignals::From::launcher : os::StopSignals::From::user);
    ending.reset();
    const os::BeforeEnd before_end(signals, [this](int signal) { end_at_once(signal); });
    signals.end_at_once(!ours_);
    std::optional<launch::Job> job;
    try {
      job.emplace(launch::JobRequest{environment_, loaded_.launch, stall_timeout_s(), start_reports()}, signals);
    } catch (const Error& error) { // no rank can join
      return refuse_start(refused_.empty() ? rank_text() + error.what() : refused_);
    }
    return run(*job, signals);
  }

 private:
  int run(launch::Job& job, os::StopSignals& signals) {
    try {
      job.enter();
      if (const std::optional<std::string> refusal = job.refusal({refused_, keys()})) {
        refuse_start(*refusal);
        job.leave();
        return kRefused;
      }
      return train(job, signals);
    } catch (const Error& error) {
      return fail(job, error);
    }
  }

  /// Another thread calls it, and the process ends without destructors.
  void end_at_once(int signal) const {
    if (metrics_) metrics_->remove_file();
    if (speaks() && loaded_.run) report_.ended_at_once(*loaded_.run, signal, trained_);
  }

  /// Handles failures of starting, such as a rank that does not join. Failures in training are reported there.
  int fail(launch::Job& job, const Error& error) {
    control::JobAbort& flag = job.abort();
    const bool first = flag.raise(environment_.rank, error.what()) || flag.rank() < 0;
    const int status = refused_.empty() ? kFailed : refuse_start(refused_);
    if (refused_.empty() && first) print_problem(rank_text() + error.what()); // else another rank prints the reason
    try {
      job.leave();
    } catch (const Error&) { // the server is lost
    }
    if (refused_.empty() && speaks() && loaded_.run) report_failure(job);
    return status;
  }

  void report_failure(launch::Job& job) const {
    std::optional<control::Failure> failure;
    if (job.server() && folder_)
      failure = launch::write_failed_start(*loaded_.run, *job.server(), *folder_,
                                           *report::make_run_log(LogLevel::warn, {}, 0));
    const control::JobAbort& flag = job.abort();
    report_.failed(*loaded_.run, failure ? failure->rank : flag.rank(), failure ? failure->why : flag.reason());
  }

  /// With --json, rank 0 prints the one object; its list of errors is empty if another rank has them.
  int refuse_start(const std::string& refusal) const {
    std::vector<config::Diagnostic> refusals = refusals_;
    if (refusal.empty()) refusals.clear();       // another rank prints them
    if (!refusal.empty() && refusal != refused_) // keys that differ from rank 0's
      refusals = {config::diagnostic(ErrorCode::kConflict, refusal)};
    if (speaks()) return report_.refused(refusals);
    print_errors(refusals);
    return kRefused;
  }

  /// Rank 0 under an external launcher prints for all. Triax's launcher has run the checks before it started ranks.
  bool speaks() const { return environment_.rank == 0 && !ours_; }
  /// If the TOML comes from a pipe, it can be read only once, so no rank reads it and all report an error. The short
  /// timeout limits how long they wait for each other to agree on who prints it.
  config::LoadResult load() const {
    constexpr double kStartTimeout_s = 10;
    if (environment_.world == 1 || !config::is_piped(arguments_.file))
      return load_run(arguments_, environment_.world, first_load());
    config::LoadResult out;
    out.refusals.push_back(config::diagnostic(
        ErrorCode::kUnsupported,
        text("{}: is standard input or a pipe, and each rank reads the TOML itself", arguments_.file),
        "write it to a file that all ranks can read"));
    out.launch.start_timeout_s = kStartTimeout_s;
    return out;
  }
  /// Triax's launcher has probed the plugins. Under other launchers, ranks start in any order, and their machines may
  /// have different libraries.
  plugin::FirstLoad first_load() const { return ours_ ? plugin::FirstLoad::direct : plugin::FirstLoad::probed; }
  /// Triax's launcher adds the rank to each line.
  std::string rank_text() const { return ours_ ? std::string() : text("rank {}: ", environment_.rank); }
  double stall_timeout_s() const { return loaded_.run ? loaded_.run->train.stall_timeout_s : 600; }

  launch::StartReports start_reports() {
    if (!speaks()) return {};
    return {[this](const report::StartState& state) { start_.update(state); },
            [](const std::string& line) { print_problem("rank 0: " + line); }};
  }

  void refuse(const std::vector<config::Diagnostic>& refusals) {
    for (const config::Diagnostic& refusal : refusals) {
      refused_ += (refused_.empty() ? "" : "\n") + refusal.text;
      refusals_.push_back(refusal);
    }
  }

  /// Keys that must be equal on all ranks. Paths may differ; then the corpora must have the same content.
  std::map<std::string, std::string> keys() const {
    std::map<std::string, std::string> out;
    if (!loaded_.run) return out;
    if (!environment_.job.empty()) out["the launcher's job"] = environment_.job;
    for (const config::ResolvedValue& value : loaded_.values) {
      const std::string table = value.key.substr(0, value.key.find('.'));
      const bool is_weight = table == "data" && value.key.ends_with("weights");
      if (is_weight || (table != "run" && table != "data" && table != "log" && table != "plugins" && table != "launch"))
        out[value.key] = value.value;
    }
    add_content(loaded_.run->data.training, out);
    add_content(loaded_.run->data.validation, out);
    return out;
  }

  static void add_content(const data::Corpora& corpora, std::map<std::string, std::string>& out) {
    for (std::size_t number = 0; number < corpora.paths.size(); ++number)
      out[text("content of {}[{}]", corpora.key, number)] =
          data::content_summary(data::TokenFile(corpora.paths[number]));
  }

  void check() {
    const auto own = [this](const train::Placement&) { return train::CheckedDevices{environment_.local_rank, 1}; };
    try {
      checked_ = ask(*loaded_.run, {placement_, own}).preflight; // only this rank's device
      refuse(refusals(loaded_, checked_));
      if (!refused_.empty() || arguments_.evaluates) return;
      folder_.emplace(*loaded_.run, config::to_toml(loaded_));
      metrics_.emplace(loaded_.run->log.metrics);
    } catch (const Error& error) { // checks cannot be run or a file cannot be written; other ranks wait for the result
      refuse({config::diagnostic(ErrorCode::kNotWritable, error)});
    }
  }

  int train(launch::Job& job, os::StopSignals& signals) {
    const config::RunConfig& run = *loaded_.run;
    const auto log = make_log(run);
    const os::StopSignalLog signals_to(signals, *log);
    if (speaks()) {
      log->info("{}", start_line(run, checked_, placement_));
      for (const std::string& note : notes(run)) log->warn("{}", note);
    }
    report::Progress progress = report::Progress::for_stderr(run.train.steps);
    train::RunRecords records(run, config::to_toml(loaded_), *log);
    train::Reports reports;
    if (environment_.rank == 0 && !run.evaluates) reports.records = &records;
    if (speaks())
      reports.step = [this, &progress](const report::StepRecord& record) {
        trained_.add(record.step);
        progress.update(record);
      };
    const launch::OnFailure failed = [&](int rank, const std::string& why, int status) {
      if (speaks()) report_.failed(run, rank, why, status);
    };
    const std::optional<train::LoopResult> result =
        launch::run_worker({run, environment_, job, placement_.threads_per_rank(), *log, signals, std::move(reports),
                            folder_ ? &*folder_ : nullptr, failed});
    if (!result) {
      progress.clear();
      return speaks() ? report_.failed(run, -1, {}) : kFailed; // prints nothing if a rank was named
    }
    progress.finish();
    if (speaks()) return report_.ended(run, *result);
    return ours_ ? kDone : end_status(*result);
  }

  std::unique_ptr<Log> make_log(const config::RunConfig& run) const {
    if (!run.evaluates) std::filesystem::create_directories(run.folder); // may not exist on this machine
    return rank_log(run, environment_.rank, {speaks() ? LogLevel::trace : LogLevel::warn, !ours_});
  }

  const TrainArguments& arguments_;
  const launch::Environment& environment_;
  const bool ours_;
  const TrainReport report_;
  const train::Placement placement_;
  const config::LoadResult loaded_;
  std::vector<config::Diagnostic> refusals_;
  std::string refused_; // joined by newlines
  train::Preflight checked_;
  std::optional<train::RunFolder> folder_;
  std::optional<train::MetricsLock> metrics_;
  TrainedSteps trained_;
  report::StartProgress start_ = report::StartProgress::for_stderr(); // until all ranks are ready
};

} // namespace

int train_launched(const TrainArguments& arguments, const launch::Environment& environment) {
  if (environment.launcher == launch::Launcher::triax) os::end_with_parent(environment.launcher_process);
  return LaunchedRank(arguments, environment).run();
}

} // namespace triax::app
