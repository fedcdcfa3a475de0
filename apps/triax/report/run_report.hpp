// SPDX-License-Identifier: Apache-2.0
// The result of `triax report` for a reader, and for a program.
//
// Threads: pure functions. report_html() loads the schedulers of runs with timelines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/reported_run.hpp"

namespace triax::app {

struct RunSummary {
  std::optional<double> loss, eval_loss;                    // the last that are finite
  std::int64_t eval_step = 0;                               // step in which eval_loss was measured
  std::optional<double> tokens_per_s, step_ms, bubble_rate; // medians of all records
  std::vector<report::GroupTraffic> traffic;                // per step, sent by rank 0: medians
  std::uint64_t memory_bytes = 0;                           // on rank 0's device, as a dry run found; 0: not recorded
  std::int64_t skipped = 0;                                 // skipped steps
};
RunSummary summary_of(const ReportedRun& run);

/// "complete", "in progress", "not complete", "failed"; "unknown" without train.steps
std::string state_text(const ReportedRun& run);

/// A row per run, with a heading: how far it is, and its losses.
std::vector<std::vector<std::string>> result_rows(const std::vector<ReportedRun>& runs);
/// Times, bubble, bytes sent on each axis, memory: as kMedians says.
std::vector<std::vector<std::string>> speed_rows(const std::vector<ReportedRun>& runs);
inline constexpr const char* kMedians =
    "of rank 0: medians over the recorded steps, bytes sent in a step on each axis, planned memory";
/// Keys whose values differ between runs; a column per run. Only a heading if none differ. run.dir is left out.
std::vector<std::vector<std::string>> difference_rows(const std::vector<ReportedRun>& runs);
/// "runs/a: metrics.jsonl is missing"
std::vector<std::string> note_lines(const std::vector<ReportedRun>& runs);

std::string report_text(const std::vector<ReportedRun>& runs);
std::string report_json(const std::vector<ReportedRun>& runs);
std::string report_html(const std::vector<ReportedRun>& runs);

} // namespace triax::app
