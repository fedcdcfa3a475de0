// SPDX-License-Identifier: Apache-2.0
// Reads a CSV file of compute actions, for plugins.
#include "triax/schedule_csv.hpp"

#include "csv/csv_actions.hpp"
#include "triax/error.hpp"

namespace triax {

namespace {

/// Throws the first problem, with the number of further problems.
void throw_if_any(const csv::Problems& problems) {
  if (problems.empty()) return;
  const std::string& first = problems.texts().front();
  const std::size_t end = first.find('\n');
  const std::string more = problems.count() > 1 ? text(" (and {} more)", problems.count() - 1) : std::string();
  throw Error(first.substr(0, end) + more, {}, end == std::string::npos ? std::string() : first.substr(end + 3));
}

void check(const csv::CellAction& action, csv::Problems& problems) {
  if (csv::is_compute(action.kind)) {
    csv::is_whole(action, problems);
  } else {
    csv::refuse_kind(action,
                     text("has kind {}; a schedule file has only F, B, I and W (Triax adds the transfers and the end "
                          "of the step)",
                          action.kind),
                     problems);
  }
}

} // namespace

CsvSchedule read_schedule_csv(const std::filesystem::path& file) {
  csv::Problems problems(file.string());
  const std::string bytes = csv::read_file(file, problems);
  throw_if_any(problems);
  const csv::Rows rows = csv::read_actions(bytes, problems, check);
  throw_if_any(problems);
  const csv::Placement placement = csv::make_placement(rows, problems);
  throw_if_any(problems);
  CsvSchedule out{placement.shape, Schedule(placement.shape, placement.stage_rank)};
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    for (const csv::CellAction& action : rows[rank])
      out.schedule.row(static_cast<int>(rank)).push_back(csv::compute_action(action));
  return out;
}

} // namespace triax
