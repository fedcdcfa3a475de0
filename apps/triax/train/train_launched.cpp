// SPDX-License-Identifier: Apache-2.0
// One rank of a job that trains or evaluates.
#include "train/train_launched.hpp"

#include <map>
#include <optional>
#include <vector>

#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "data/content_summary.hpp"
#include "launch/worker.hpp"
#include "report/progress.hpp"
#include "train/launched_rank.hpp"
#include "train/metrics_lock.hpp"
#include "train/train_result.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

class TrainingProcess final : public LaunchedRank {
 public:
  TrainingProcess(const TrainArguments& arguments, const launch::Environment& environment)
      : LaunchedRank(environment), arguments_(arguments), report_(arguments) {}

 private:
  /// If the TOML comes from a pipe, it can be read only once, so no rank reads it and all report an error. The short
  /// timeout limits how long they wait for each other to agree on who prints it.
  config::LoadResult load() override {
    constexpr double kStartTimeout_s = 10;
    if (environment().world == 1 || !config::is_piped(arguments_.file))
      return load_run(arguments_, environment().world, first_load());
    config::LoadResult out;
    out.refusals.push_back(config::diagnostic(
        ErrorCode::kUnsupported,
        text("{}: is standard input or a pipe, but each rank reads the TOML itself", arguments_.file),
        "write it to a file that all ranks can read"));
    out.launch.start_timeout_s = kStartTimeout_s;
    return out;
  }

  void check() override {
    const auto own = [this](const train::Placement&) { return train::CheckedDevices{environment().local_rank, 1}; };
    try {
      checked_ = ask(run_config(), {placement(), own}).preflight; // only this rank's device
      refuse(refusals(loaded(), checked_));
      if (is_refused() || arguments_.evaluates) return;
      folder_.emplace(run_config(), config::to_toml(loaded()));
      metrics_.emplace(run_config().log.metrics);
    } catch (const Error& error) { // checks cannot be run or a file cannot be written; other ranks wait for the result
      refuse({config::diagnostic(ErrorCode::kNotWritable, error)});
    }
  }

  void add_keys(std::map<std::string, std::string>& keys) const override {
    add_content(run_config().data.training, keys);
    add_content(run_config().data.validation, keys);
  }

  static void add_content(const data::Corpora& corpora, std::map<std::string, std::string>& out) {
    for (std::size_t number = 0; number < corpora.paths.size(); ++number)
      out[text("content of {}[{}]", corpora.key, number)] =
          data::content_summary(data::TokenFile(corpora.paths[number]));
  }

  int print_refused(const std::vector<config::Diagnostic>& refusals) const override {
    return report_.refused(refusals);
  }
  void print_failed(int rank, const std::string& why) const override { report_.failed(run_config(), rank, why); }
  bool wants_json() const override { return arguments_.json; }
  std::string ended_before(int signal) const override { return report_.ended_before(signal); }
  void end_at_once(int signal) const override {
    if (metrics_) metrics_->remove_file();
    if (is_reporter() && loaded().run) report_.ended_at_once(run_config(), signal, trained_);
  }
  const train::RunFolder* folder() const override { return folder_ ? &*folder_ : nullptr; }

  int work(launch::Job& job, os::StopSignals& signals) override {
    const config::RunConfig& run = run_config();
    const auto log = make_log(run);
    const os::StopSignalLog signals_to(signals, *log, run.evaluates ? os::kEndOfBatch : os::kEndOfStep);
    if (is_reporter()) log_start(*log, run, checked_, placement());
    report::Progress progress = report::Progress::for_stderr(run.train.steps);
    train::RunRecords records(run, config::to_toml(loaded()), *log);
    train::Reports reports;
    if (environment().rank == 0 && !run.evaluates) reports.records = &records;
    if (is_reporter())
      reports.step = [this, &progress](const report::StepRecord& record) {
        trained_.add(record.step);
        progress.update(record);
      };
    const launch::OnFailure failed = [&](int rank, const std::string& why, int status) {
      if (is_reporter()) report_.failed(run, rank, why, status);
    };
    const std::optional<train::LoopResult> result = launch::run_worker(
        {run, environment(), job, placement().threads_per_rank(), *log, signals, std::move(reports), folder(), failed});
    if (!result) {
      progress.clear();
      return is_reporter() ? report_.failed(run, -1, {}) : kFailed; // prints nothing if a rank was named
    }
    progress.finish();
    if (is_reporter()) return report_.ended(run, *result);
    return is_ours() ? kDone : end_status(*result);
  }

  std::unique_ptr<Log> make_log(const config::RunConfig& run) const {
    if (!run.evaluates) std::filesystem::create_directories(run.folder); // may not exist on this machine
    return rank_log(run, environment().rank, {is_reporter() ? LogLevel::trace : LogLevel::warn, !is_ours()});
  }

  const TrainArguments& arguments_;
  const TrainReport report_;
  train::Preflight checked_;
  std::optional<train::RunFolder> folder_;
  std::optional<train::MetricsLock> metrics_;
  TrainedSteps trained_;
};

} // namespace

int train_launched(const TrainArguments& arguments, const launch::Environment& environment) {
  return TrainingProcess(arguments, environment).run();
}

} // namespace triax::app
