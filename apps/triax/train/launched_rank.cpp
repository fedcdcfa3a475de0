// SPDX-License-Identifier: Apache-2.0
#include "train/launched_rank.hpp"

#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "os/child_process.hpp"
#include "os/ending_signals.hpp"
#include "report/run_log.hpp"

namespace triax::app {

int LaunchedRank::run() {
  if (ours_) os::end_with_parent(environment_.launcher_process);
  loaded_ = load();
  refuse(loaded_.refusals);
  std::optional<os::EndingSignals> ending; // until there is a run that can be stopped
  if (wants_json() && is_reporter())
    ending.emplace(result_descriptor(), [this](int signal) { return ended_before(signal); });
  if (loaded_.run && is_reporter()) check();
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

int LaunchedRank::run(launch::Job& job, os::StopSignals& signals) {
  try {
    job.enter();
    if (const std::optional<std::string> refusal = job.wait_for_start({refused_, keys()})) {
      refuse_start(*refusal);
      job.leave();
      return kRefused;
    }
    return work(job, signals);
  } catch (const Error& error) {
    return fail(job, error);
  }
}

/// Handles failures of starting, such as a rank that does not join. Failures in the rank's work are reported there.
int LaunchedRank::fail(launch::Job& job, const Error& error) {
  control::JobAbort& flag = job.abort();
  const bool first = flag.raise(environment_.rank, error.what()) || flag.rank() < 0;
  const int status = refused_.empty() ? kFailed : refuse_start(refused_);
  // Else another rank prints the reason. A lost rank cannot: the process of the job server reports every failure.
  if (refused_.empty() && (first || job.server())) print_problem(rank_text() + error.what());
  try {
    job.leave();
  } catch (const Error&) { // the server is lost
  }
  if (refused_.empty() && is_reporter() && loaded_.run) report_failure(job);
  return status;
}

void LaunchedRank::report_failure(launch::Job& job) const {
  std::optional<control::Failure> failure;
  if (job.server() && folder())
    failure = launch::write_failed_start(*loaded_.run, *job.server(), *folder(),
                                         *report::make_run_log(LogLevel::warn, {}, 0));
  const control::JobAbort& flag = job.abort();
  print_failed(failure ? failure->rank : flag.rank(), failure ? failure->why : flag.reason());
}

/// With --json, rank 0 prints the one object; its list of errors is empty if another rank has them.
int LaunchedRank::refuse_start(const std::string& refusal) const {
  std::vector<config::Diagnostic> refusals = refusals_;
  if (refusal.empty()) refusals.clear();       // another rank prints them
  if (!refusal.empty() && refusal != refused_) // keys that differ from rank 0's
    refusals = {config::diagnostic(ErrorCode::kConflict, refusal)};
  if (is_reporter()) return print_refused(refusals);
  print_errors(refusals);
  return kRefused;
}

launch::StartReports LaunchedRank::start_reports() {
  if (!is_reporter()) return {};
  return {[this](const report::StartState& state) { start_.update(state); },
          [](const std::string& line) { print_problem("rank 0: " + line); }};
}

void LaunchedRank::refuse(const std::vector<config::Diagnostic>& refusals) {
  for (const config::Diagnostic& refusal : refusals) {
    refused_ += (refused_.empty() ? "" : "\n") + refusal.text;
    refusals_.push_back(refusal);
  }
}

/// Paths may differ; then the corpora must have the same content.
std::map<std::string, std::string> LaunchedRank::keys() const {
  std::map<std::string, std::string> out;
  if (!loaded_.run) return out;
  if (!environment_.job.empty()) out["the launcher's job"] = environment_.job;
  for (const config::ResolvedValue& value : loaded_.values) {
    const std::string table = value.key.substr(0, value.key.find('.'));
    const bool is_weight = table == "data" && value.key.ends_with("weights");
    if (is_weight || (table != "run" && table != "data" && table != "log" && table != "plugins" && table != "launch"))
      out[value.key] = value.value;
  }
  add_keys(out);
  return out;
}

} // namespace triax::app
