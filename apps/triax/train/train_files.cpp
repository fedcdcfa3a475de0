// SPDX-License-Identifier: Apache-2.0
#include "train/train_files.hpp"

#include "config/run_files.hpp"
#include "train/machine_memory.hpp"

namespace triax::app {

train::CheckedRun ask(const config::RunConfig& run, const train::PreflightRequest& request) {
  const auto quiet = report::make_run_log(LogLevel::warn, {}, 0);
  train::CheckedRun checked = train::preflight_in_child(run, *quiet, request);
  if (!checked.preflight.refusals.empty()) return checked;
  checked.preflight.refusals.add(train::fits_in_memory(checked.preflight, checked.placement));
  return checked;
}

std::vector<config::Diagnostic> refusals(const config::LoadResult& loaded, const train::Preflight& checked) {
  std::vector<config::Diagnostic> out;
  for (const Refusal& answer : checked.refusals) out.push_back(config::diagnose(answer, loaded.values));
  return out;
}

std::vector<std::unique_ptr<Log>> rank_logs(const config::RunConfig& run, int ranks) {
  std::vector<std::unique_ptr<Log>> out;
  out.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    out.push_back(report::make_run_log(report::parse_level(run.log.level), train::log_file(run, rank), rank,
                                       {rank == 0 ? LogLevel::trace : LogLevel::warn}));
  return out;
}

std::unique_ptr<Log> launcher_log(const config::RunConfig& run) {
  return report::make_run_log(report::parse_level(run.log.level), run.folder / config::kLauncherLog, report::kLauncher);
}

} // namespace triax::app
