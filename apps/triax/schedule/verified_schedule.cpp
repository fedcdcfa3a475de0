// SPDX-License-Identifier: Apache-2.0
#include "schedule/verified_schedule.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/verbs.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/probe_process.hpp"
#include "schedule/csv_violations.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify.hpp"

namespace triax::app {

namespace {

Support size_of(const PipelineShape& shape) {
  if (shape.pipeline > schedule::kMaxRanks)
    return Support::no("p = {} is more than {} pipeline ranks", shape.pipeline, schedule::kMaxRanks);
  if (std::int64_t{shape.pipeline} * shape.chunks * shape.microbatches <= schedule::kMaxActions) return Support::yes();
  return Support::no("p = {} x v = {} x m = {} is more than {} actions of each kind", shape.pipeline, shape.chunks,
                     shape.microbatches, schedule::kMaxActions)
      .hint("use smaller sizes");
}

Support named(const ScheduleSource& source, const schedule::Violation& fault) {
  return source.file ? in_words_of_file(*source.file, fault)
                     : Support::no("{}: {}", source.scheduler.name, fault.reason());
}

std::vector<config::Refusal> told(const ScheduleSource& source, std::vector<schedule::Violation> faults) {
  if (source.file) faults = without_consequences(std::move(faults));
  std::vector<config::Refusal> out;
  for (std::size_t at = 0; at < std::min(faults.size(), schedule::kMaxShownFaults); ++at)
    out.push_back(config::refusal(named(source, faults[at]), source.values));
  if (faults.size() > schedule::kMaxShownFaults)
    out.push_back({text("... and {} more", faults.size() - schedule::kMaxShownFaults)});
  return out;
}

constexpr schedule::Assumptions kMin = schedule::everywhere(schedule::kMinPromise);

/// Verifies the rows, then the programs lowered from them.
std::vector<schedule::Violation> faults_of(ProvedSchedule& made, const ScheduleSource& source, const Proof& proof) {
  const PipelineShape& shape = source.shape;
  std::vector<schedule::Violation> faults = schedule::verify(made.schedule, shape);
  if (!faults.empty()) return faults;
  made.programs = schedule::lower(made.schedule, shape, source.boundaries);
  faults = schedule::verify(made.programs, {shape, false, proof.cap}, kMin);
  if (proof.evaluation)
    std::ranges::move(
        schedule::verify(schedule::lower_forward_only(made.schedule, shape, source.boundaries), {shape, true}, kMin),
        std::back_inserter(faults));
  return faults;
}

/// Calls the scheduler; `out` has no rows if there are problems.
void make_rows(const ScheduleSource& source, ProvedSchedule& out) {
  const PluginContext context{source.scheduler.options, null_log(), source.layout};
  const std::string& name = source.scheduler.name;
  try {
    const auto scheduler = plugin::create<Scheduler>(*source.scheduler.library, context);
    const Support answer = plugin::asking(name, "supports", [&] { return scheduler->supports(source.shape); });
    if (answer) {
      out.schedule = plugin::asking(
          name, "rows", [&] { return scheduler->rows(source.shape); }, plugin::CallKind::plan);
    } else {
      out = refused(source, answer);
    }
  } catch (const Error& error) { // there is nothing to verify
    out = {{}, {}, {{error.what()}}, kRefused};
  }
}

/// Creates the rows twice, first in a child process: a scheduler that crashes or hangs is reported by name.
void ask_scheduler(const ScheduleSource& source, ProvedSchedule& out) {
  const auto body = [&source] {
    ProvedSchedule dropped;
    make_rows(source, dropped);
    return std::string();
  };
  const plugin::ProbeResult probed = plugin::run_probe(body, plugin::ProbeOutput::captured);
  if (!probed.failure) return make_rows(source, out);
  const std::filesystem::path& file = source.scheduler.library->file;
  out = refused(
      source, Support::no("schedule.plugin \"{}\": {}, file {}", source.scheduler.name, probed.failure->reason(), file)
                  .hint("{}", plugin::probe_hint(file)));
}

} // namespace

ProvedSchedule refused(const ScheduleSource& source, const Support& answer) {
  return {{}, {}, {config::refusal(answer, source.values)}, kRefused};
}

ProvedSchedule prove(const ScheduleSource& source, const Proof& proof) {
  if (!source.refusals.empty()) return {{}, {}, source.refusals, kRefused};
  if (const Support answer = size_of(source.shape); !answer) return refused(source, answer);
  ProvedSchedule out;
  std::vector<schedule::Violation> faults;
  if (source.file && source.file->lowered) { // verified unchanged
    out.schedule = source.file->schedule;
    out.programs = schedule::programs_of(*source.file);
    faults = schedule::verify(out.programs, {source.shape, false, proof.cap}, kMin);
  } else {
    if (source.file) {
      out.schedule = source.file->schedule;
    } else {
      ask_scheduler(source, out);
    }
    if (!out.problems.empty()) return out;
    faults = faults_of(out, source, proof);
  }
  if (!faults.empty()) return {{}, {}, told(source, std::move(faults)), kFailed};
  return out;
}

} // namespace triax::app
