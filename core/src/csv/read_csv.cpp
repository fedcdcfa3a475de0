// SPDX-License-Identifier: Apache-2.0
// Reads CSV files of all kinds of the rule table, based on the shared reader (csv/csv_actions.hpp).
#include "csv/read_csv.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "csv/csv_actions.hpp"
#include "schedule/rank_lowering.hpp"

namespace triax::schedule {

namespace {

std::string known_kinds() {
  std::string out;
  for (const Rule& rule : rules()) out += (out.empty() ? "" : ", ") + std::string(rule.name);
  return out;
}

/// Whether the action has the numbers that its kind requires; otherwise adds problems.
bool is_whole(const csv::CellAction& action, Kind kind, csv::Problems& problems) {
  switch (rule(kind).scope) {
    case Scope::microbatch:
      return csv::is_whole(action, problems);
    case Scope::stage:
      if (action.stage < 0)
        problems.add(action.cell, "has no stage", text("write its stage before it: 3{}", action.kind));
      if (action.microbatch >= 0)
        problems.add(action.cell, "has a microbatch, but applies to a whole stage", text("write 3{}", action.kind));
      return action.stage >= 0 && action.microbatch < 0;
    case Scope::rank:
      break;
  }
  if (action.stage < 0 && action.microbatch < 0) return true;
  problems.add(action.cell, "applies to a whole rank, but has a stage or a microbatch", text("write {}", action.kind));
  return false;
}

/// Checks the kind, and whether this version can run the action.
void check(const csv::CellAction& action, csv::Problems& problems) {
  const std::optional<Kind> kind = kind_named(action.kind);
  if (!kind)
    return csv::refuse_kind(action, text("has unknown kind {}; known: {}", action.kind, known_kinds()), problems);
  if (is_whole(action, *kind, problems) && (action.slice != 0 || action.replica != 0))
    problems.add(action.cell, "has a slice or a second pipeline; this version supports neither");
}

CsvFile::LocatedAction located(const csv::CellAction& action) {
  return {kind_named(action.kind).value(), action.stage, action.microbatch, action.cell.at.line, action.cell.at.cell};
}

/// The other rank of a transfer; -1: the stage does not exist.
int peer_of(const CsvFile::LocatedAction& action, const StageMap& stage_map) {
  const int neighbour = action.stage + peer_offset(action.kind);
  return neighbour < 0 || neighbour >= stage_map.stages() ? -1 : stage_map.rank_of(neighbour);
}

/// The stages and microbatches of input gradients.
std::set<std::pair<int, int>> split_backwards(const std::vector<CsvFile::LocatedAction>& actions) {
  std::set<std::pair<int, int>> out;
  for (const CsvFile::LocatedAction& action : actions)
    if (action.kind == Kind::backward_input) out.emplace(action.stage, action.microbatch);
  return out;
}

CsvFile refused(const csv::Problems& problems) {
  CsvFile out;
  out.name = problems.file();
  out.problems = problems.texts();
  out.problem_count = problems.count();
  return out;
}

} // namespace

CsvFile read_csv_file(const std::filesystem::path& file) {
  csv::Problems problems(file.string());
  const std::string bytes = csv::read_file(file, problems);
  return problems.empty() ? read_csv(bytes, file.string()) : refused(problems);
}

CsvFile read_csv(std::string_view csv, const std::string& name) {
  csv::Problems problems(name);
  const csv::Rows rows = csv::read_actions(csv, problems, check);
  if (!problems.empty()) return refused(problems);
  csv::Placement placement = csv::make_placement(rows, problems);
  if (!problems.empty()) return refused(problems);
  CsvFile out;
  out.name = name;
  out.shape = placement.shape;
  out.schedule = Schedule(out.shape, std::move(placement.stage_rank));
  for (int rank = 0; rank < out.shape.pipeline; ++rank) {
    std::vector<CsvFile::LocatedAction>& actions = out.actions.emplace_back();
    for (const csv::CellAction& action : rows[static_cast<std::size_t>(rank)]) {
      actions.push_back(located(action));
      if (csv::is_compute(action.kind)) {
        out.schedule.row(rank).push_back(csv::compute_action(action));
      } else {
        out.lowered = true;
      }
    }
  }
  return out;
}

std::vector<Program> programs_of(const CsvFile& file) {
  const StageMap stage_map(file.schedule.stage_rank().at(0));
  const auto has = [&file](auto kind) {
    return std::ranges::any_of(file.actions, [&kind](const std::vector<CsvFile::LocatedAction>& actions) {
      return std::ranges::any_of(actions, kind, &CsvFile::LocatedAction::kind);
    });
  };
  const Boundaries boundaries = has(gathers) ? Boundaries::scattered : Boundaries::whole;
  const auto has_kind = [&has](Kind wanted) { return has([wanted](Kind kind) { return kind == wanted; }); };
  const Sharding sharding = has_kind(Kind::unshard) || has_kind(Kind::reshard) ? Sharding::parameters
                            : has_kind(Kind::gather_param)                     ? Sharding::states
                                                                               : Sharding::none;
  std::vector<Program> out;
  out.reserve(file.actions.size());
  for (std::size_t rank = 0; rank < file.actions.size(); ++rank) {
    const std::vector<CsvFile::LocatedAction>& actions = file.actions[rank];
    RankLowering program(stage_map, static_cast<int>(rank), false, boundaries, sharding);
    program.reserve(actions.size());
    const std::set<std::pair<int, int>> split = split_backwards(actions);
    for (const CsvFile::LocatedAction& action : actions) {
      if (action.kind == Kind::recompute) {
        program.add_recompute(action.stage, action.microbatch, split.contains({action.stage, action.microbatch}));
      } else if (rule(action.kind).scope != Scope::microbatch) {
        program.add_ending(action.kind, action.stage);
      } else {
        program.add(action.kind, action.stage, action.microbatch,
                    is_transfer(action.kind) ? peer_of(action, stage_map) : -1);
      }
    }
    out.push_back(program.finish(Program::Posts::sets));
  }
  return out;
}

} // namespace triax::schedule
