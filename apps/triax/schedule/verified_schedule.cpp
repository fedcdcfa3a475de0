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
#include "schedule/schedule_flags.hpp"
#include "schedule/verify.hpp"
#include "train/plugins.hpp"

namespace triax::app {

namespace {

Refusals size_of(const PipelineShape& shape) {
  if (shape.pipeline > schedule::kMaxRanks)
    return make_refusal(ErrorCode::kTooLarge, {"parallel.pipeline"}, "p = {} is more than {} pipeline ranks",
                        shape.pipeline, schedule::kMaxRanks);
  if (std::int64_t{shape.pipeline} * shape.chunks * shape.microbatches <= schedule::kMaxActions) return {};
  return make_refusal(ErrorCode::kTooLarge, {"parallel.pipeline"},
                      "p = {} x v = {} x m = {} is more than {} actions of each kind", shape.pipeline, shape.chunks,
                      shape.microbatches, schedule::kMaxActions)
      .with_hint("use smaller sizes");
}

Refusal named(const ScheduleSource& source, const schedule::Violation& violation) {
  return source.file ? text_of_file(*source.file, violation)
                     : make_refusal(ErrorCode::kInvalidSchedule, {"schedule.plugin"}, "{}: {}", source.scheduler.name,
                                    violation.reason());
}

/// The smallest --cap that the programs do not exceed.
int smallest_cap(const std::vector<schedule::Program>& programs) {
  int out = 0;
  for (const schedule::Program& program : programs) {
    int in_flight = 0;
    for (const schedule::ProgramAction& action : program.actions()) {
      in_flight += action.kind == schedule::Kind::forward;
      in_flight -= action.kind == schedule::Kind::backward || action.kind == schedule::Kind::backward_weight;
      out = std::max(out, in_flight);
    }
  }
  return out;
}

std::vector<config::Diagnostic> diagnostics_of(const ScheduleSource& source, const VerifiedSchedule& made,
                                               std::vector<schedule::Violation> violations) {
  if (source.file) violations = without_consequences(std::move(violations));
  std::vector<config::Diagnostic> out;
  const std::size_t shown = std::min(violations.size(), schedule::kMaxShownViolations);
  const auto exceeds = [&](std::size_t at) { return violations[at].rule == schedule::Violation::Rule::within_cap; };
  for (std::size_t at = 0; at < shown; ++at) {
    Refusal refusal = named(source, violations[at]);
    const bool is_last = at + 1 == shown || !exceeds(at + 1); // one hint for those in a row
    if (exceeds(at) && is_last) refusal.hint = text("use --cap {}, or another schedule", smallest_cap(made.programs));
    out.push_back(diagnose(source, refusal));
  }
  if (violations.size() > schedule::kMaxShownViolations)
    out.push_back(config::diagnostic(ErrorCode::kInvalidSchedule,
                                     text("... and {} more", violations.size() - schedule::kMaxShownViolations)));
  return out;
}

constexpr schedule::Assumptions kMin = schedule::everywhere(schedule::kMinGuarantee);

/// Verifies the rows, then the programs lowered from them.
std::vector<schedule::Violation> violations_of(VerifiedSchedule& made, const ScheduleSource& source,
                                               const VerifyOptions& options) {
  const PipelineShape& shape = source.shape;
  std::vector<schedule::Violation> violations = schedule::verify(made.schedule, shape);
  if (!violations.empty()) return violations;
  made.programs = schedule::lower(made.schedule, shape, source.boundaries, source.sharding, source.prefetch,
                                  std::vector<bool>(static_cast<std::size_t>(shape.stages()), options.recomputes));
  violations = schedule::verify(made.programs, {shape, false, options.cap}, kMin);
  if (options.evaluation)
    std::ranges::move(schedule::verify(schedule::lower_forward_only(made.schedule, shape, source.boundaries,
                                                                    source.sharding, source.prefetch),
                                       {shape, true}, kMin),
                      std::back_inserter(violations));
  return violations;
}

/// Calls the scheduler; `out` has no rows if there are problems.
void make_rows(const ScheduleSource& source, VerifiedSchedule& out) {
  const PluginContext context{source.scheduler.options, null_log(), source.layout};
  const std::string& name = source.scheduler.name;
  try {
    const auto scheduler = plugin::create<Scheduler>(*source.scheduler.library, context);
    const Refusals answer = plugin::guarded_call(name, "supports", [&] { return scheduler->supports(source.shape); });
    if (answer.empty()) {
      out.schedule = plugin::guarded_call(
          name, "rows", [&] { return scheduler->rows(source.shape); }, plugin::CallKind::slow_call);
    } else {
      out = refused(source, train::of_plugin(source.scheduler, answer));
    }
  } catch (const Error& error) { // there is nothing to verify
    out = refused(source, train::failure_of(source.scheduler, error));
  }
}

/// Creates the rows twice, first in a child process: a scheduler that crashes or hangs is reported by name.
void ask_scheduler(const ScheduleSource& source, VerifiedSchedule& out) {
  const auto body = [&source] {
    VerifiedSchedule dropped;
    make_rows(source, dropped);
    return std::string();
  };
  const plugin::ProbeResult probed = plugin::run_probe(body, plugin::ProbeOutput::captured);
  if (!probed.failure) return make_rows(source, out);
  const std::filesystem::path& file = source.scheduler.library->file;
  out =
      refused(source, make_refusal(ErrorCode::kPluginFailed, {"schedule.plugin"}, "schedule.plugin \"{}\": {}, file {}",
                                   source.scheduler.name, probed.failure->reason(), file)
                          .with_hint("{}", probed.failure->hint(file)));
}

} // namespace

VerifiedSchedule refused(const ScheduleSource& source, const Refusals& answer) {
  VerifiedSchedule out;
  out.status = kRefused;
  for (const Refusal& refusal : answer) out.problems.push_back(diagnose(source, refusal));
  return out;
}

VerifiedSchedule verify_schedule(const ScheduleSource& source, const VerifyOptions& options) {
  if (!source.refusals.empty()) return {{}, {}, source.refusals, kRefused};
  if (const Refusals answer = size_of(source.shape); !answer.empty()) return refused(source, answer);
  VerifiedSchedule out;
  std::vector<schedule::Violation> violations;
  if (source.file && source.file->lowered) { // verified unchanged
    out.schedule = source.file->schedule;
    out.programs = schedule::programs_of(*source.file);
    violations = schedule::verify(out.programs, {source.shape, false, options.cap}, kMin);
  } else {
    if (source.file) {
      out.schedule = source.file->schedule;
    } else {
      ask_scheduler(source, out);
    }
    if (!out.problems.empty()) return out;
    violations = violations_of(out, source, options);
  }
  if (!violations.empty()) return {{}, {}, diagnostics_of(source, out, std::move(violations)), kFailed};
  return out;
}

} // namespace triax::app
