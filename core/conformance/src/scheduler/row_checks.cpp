// SPDX-License-Identifier: Apache-2.0
// Rows: the engine's verifier on all accepted shapes of the sweep, and the time of a large shape.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shape_sweep.hpp"

namespace triax::conformance {

namespace {

std::string unless_verifier(const SchedulerSubject& subject) {
  return subject.verify ? "" : "there is no verifier; triax plugins test has one";
}

/// The verifier stops at the first group of violations: a later clause is checked only for rows that keep the earlier
/// ones, so each violation is reported by one check.
template <char number>
void rows_keep(const SchedulerSubject& subject, Report& report) {
  const std::string clause{'S', number};
  const Object<Scheduler> scheduler = subject.scheduler(0);
  for_accepted_shapes(*scheduler, report, [&](const PipelineShape& shape, const Schedule& rows) {
    for (const ScheduleViolation& violation : subject.verify(rows, shape))
      if (violation.clause == clause) report.fail(text("{}: {}", shape_text(shape), violation.message));
  });
}

/// A large shape that the scheduler accepts, or else the largest of the sweep.
PipelineShape large_shape(const Scheduler& scheduler) {
  constexpr int kLargePipeline = 64, kLargeMicrobatches = 512;
  std::vector<PipelineShape> shapes = swept_shapes();
  std::ranges::stable_sort(
      shapes, {}, [](const PipelineShape& shape) { return std::int64_t{shape.stages()} * shape.microbatches; });
  for (const int chunks : {4, 2, 1}) shapes.push_back({kLargePipeline, chunks, kLargeMicrobatches});
  const auto found = std::find_if(shapes.rbegin(), shapes.rend(),
                                  [&](const PipelineShape& shape) { return scheduler.supports(shape).empty(); });
  if (found == shapes.rend()) throw Error("the scheduler accepts no shape, so it gives no rows");
  return *found;
}

/// Calls rows() only, and counts its actions, so that the time of this check is the time of rows().
void large_rows_are_complete(const SchedulerSubject& subject, Report& report) {
  const Object<Scheduler> scheduler = subject.scheduler(0);
  const PipelineShape shape = large_shape(*scheduler);
  const Schedule rows = scheduler->rows(shape);
  std::array<std::int64_t, 4> counts{};
  for (int rank = 0; rank < rows.ranks(); ++rank)
    for (const Action& action : rows.row(rank))
      if (action.kind <= ComputeKind::backward_weight) ++counts[static_cast<std::size_t>(action.kind)];
  const std::int64_t expected = std::int64_t{shape.stages()} * shape.microbatches;
  const auto [forward, backward, input, weight] = counts;
  report.expect(forward == expected, "{}: {} F, must be {}", shape_text(shape), forward, expected);
  report.expect(backward + input == expected && input == weight,
                "{}: {} B, {} I and {} W; B and I must be {} together, and W as many as I", shape_text(shape), backward,
                input, weight, expected);
}

constexpr ScheduleCheck kRowChecks[] = {
    {"Rows.GiveEachStageToARank", "S3", unless_verifier, rows_keep<'3'>},
    {"Rows.HaveEachActionOnce", "S4", unless_verifier, rows_keep<'4'>},
    {"Rows.LargeShapeHasAllActions", "S4", nullptr, large_rows_are_complete},
    {"Rows.AreInOrder", "S5", unless_verifier, rows_keep<'5'>},
    {"Rows.EndOnEveryCommunicator", "S6", unless_verifier, rows_keep<'6'>},
};

} // namespace

std::span<const ScheduleCheck> row_checks() {
  return kRowChecks;
}

std::vector<Check> scheduler_checks(const SchedulerSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {shape_checks(), row_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

} // namespace triax::conformance
