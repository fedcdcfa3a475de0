// SPDX-License-Identifier: Apache-2.0
// Verification of a scheduler's rows over all ranks.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "schedule/dense_table.hpp"
#include "schedule/verify.hpp"

namespace triax::schedule {

namespace {

using Rule = Violation::Rule;

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

struct Entry {
  int rank = 0;
  std::size_t position = kNowhere;
};

/// F and the two halves of a backward; B is both halves.
enum class Part { forward, input, weight };

std::span<const Part> parts(ComputeKind kind) {
  static constexpr std::array<Part, 1> kForward{Part::forward}, kInput{Part::input}, kWeight{Part::weight};
  static constexpr std::array<Part, 2> kWhole{Part::input, Part::weight};
  switch (kind) {
    case ComputeKind::forward:
      return kForward;
    case ComputeKind::backward:
      return kWhole;
    case ComputeKind::backward_input:
      return kInput;
    case ComputeKind::backward_weight:
      break;
  }
  return kWeight;
}

Part part_of(Kind kind) {
  return kind == Kind::forward ? Part::forward : kind == Kind::backward_weight ? Part::weight : Part::input;
}

/// The kind that is reported missing if a part is not found.
Kind kind_making(Part part) {
  static constexpr Kind kKinds[] = {Kind::forward, Kind::backward_input, Kind::backward_weight};
  return kKinds[static_cast<int>(part)];
}

/// A pass of the same microbatch that a pass needs.
struct Needed {
  Part part = Part::forward;
  int stage = 0;
  bool counts = false;    // with this stage map; else a transfer takes its place
  bool is_before = false; // in the same row
};

/// Progress of all ranks, and which rank waits for which. A rank is visited again only when the action it waits for is
/// done.
class Progress {
 public:
  explicit Progress(int ranks)
      : reached_(static_cast<std::size_t>(ranks), 0), waiting_(static_cast<std::size_t>(ranks)) {
    for (int rank = ranks - 1; rank >= 0; --rank) ready_.push_back(rank);
  }

  std::optional<int> next() {
    if (ready_.empty()) return std::nullopt;
    const int rank = ready_.back();
    ready_.pop_back();
    return rank;
  }
  std::size_t& reached(int rank) { return reached_[static_cast<std::size_t>(rank)]; }
  bool done(const Entry& entry) const { return entry.position < reached_[static_cast<std::size_t>(entry.rank)]; }

  void waits(int rank, const Entry& entry) {
    waiting_[static_cast<std::size_t>(entry.rank)].push({entry.position, rank});
  }
  /// Makes the ranks ready that waited for an action that `rank` has now finished.
  void advanced(int rank) {
    Waiting& waiting = waiting_[static_cast<std::size_t>(rank)];
    for (; !waiting.empty() && waiting.top().first < reached(rank); waiting.pop())
      ready_.push_back(waiting.top().second);
  }

 private:
  using Waiter = std::pair<std::size_t, int>; // position that is waited for, and the waiting rank
  using Waiting = std::priority_queue<Waiter, std::vector<Waiter>, std::greater<>>;

  std::vector<std::size_t> reached_;
  std::vector<Waiting> waiting_;
  std::vector<int> ready_;
};

class Stages {
 public:
  explicit Stages(int stages = 0) : has_(static_cast<std::size_t>(stages), false) {}
  void add(int stage) { has_[static_cast<std::size_t>(stage)] = any_ = true; }
  bool has(int stage) const { return has_[static_cast<std::size_t>(stage)]; }
  bool any() const { return any_; }

 private:
  std::vector<bool> has_;
  bool any_ = false;
};

class RowsCheck {
 public:
  RowsCheck(const Schedule& schedule, const PipelineShape& shape) : schedule_(schedule), shape_(shape) {}

  std::vector<Violation> run_stage_map() {
    shape_fits();
    return std::move(violations_);
  }

  std::vector<Violation> run() {
    if (!shape_fits()) return std::move(violations_);
    stage_map_ = StageMap(schedule_.stage_rank()[0]);
    list_needs();
    found_ = Cells<Entry>(3, shape_.stages(), shape_.microbatches, Entry{});
    whole_ = split_ = Stages(shape_.stages());
    for_each_action([this](const Entry& entry, const Action& action) { note(entry, action); });
    if (violations_.empty()) find_missing();
    if (!violations_.empty()) return std::move(violations_);
    for_each_action([this](const Entry& entry, const Action& action) { check_order(entry, action); });
    const bool in_order = violations_.empty();
    for_each_action([this](const Entry& entry, const Action& action) { check_ascending(entry, action); });
    if (in_order) check_progress();
    return std::move(violations_);
  }

 private:
  template <class Visit>
  void for_each_action(Visit visit) {
    for (int rank = 0; rank < schedule_.ranks(); ++rank)
      for (std::size_t position = 0; position < schedule_.row(rank).size(); ++position)
        visit(Entry{rank, position}, schedule_.row(rank)[position]);
  }

  static ActionRef ref_of(const Entry& entry, const Action& action) {
    return {entry.rank,           static_cast<ActionId>(entry.position),
            kind_of(action.kind), action.stage,
            action.microbatch,    action.slice,
            action.replica};
  }
  ActionRef ref_of(const Entry& entry) const { return ref_of(entry, schedule_.row(entry.rank)[entry.position]); }

  bool shape_fits() {
    if (schedule_.ranks() != shape_.pipeline)
      violations_.push_back({.rule = Rule::rows_per_rank, .has = schedule_.ranks(), .wanted = shape_.pipeline});
    if (schedule_.stage_rank().size() != 1) {
      violations_.push_back({.rule = Rule::one_pipeline, .has = static_cast<int>(schedule_.stage_rank().size())});
      return false;
    }
    const std::vector<int>& ranks = schedule_.stage_rank()[0];
    const auto stages = static_cast<int>(ranks.size());
    if (stages != shape_.stages())
      violations_.push_back({.rule = Rule::all_stages, .has = stages, .wanted = shape_.stages()});
    for (int stage = 0; stage < stages; ++stage) {
      const int rank = ranks[static_cast<std::size_t>(stage)];
      if (rank < 0 || rank >= shape_.pipeline)
        violations_.push_back(
            {.rule = Rule::stage_on_a_rank, .at = {.stage = stage}, .has = rank, .wanted = shape_.pipeline});
    }
    for (int rank = 0; rank < shape_.pipeline; ++rank)
      if (std::ranges::count(ranks, rank) == 0)
        violations_.push_back({.rule = Rule::rank_with_a_stage, .at = {.rank = rank}});
    return violations_.empty();
  }

  int rank_of(int stage) const { return stage_map_.rank_of(stage); }

  void note(const Entry& entry, const Action& action) {
    const ActionRef at = ref_of(entry, action);
    if (action.kind > ComputeKind::backward_weight) {
      violations_.push_back({.rule = Rule::known_kind, .at = at, .has = static_cast<int>(action.kind)});
    } else if (action.stage < 0 || action.stage >= shape_.stages()) {
      violations_.push_back({.rule = Rule::known_stage, .at = at, .wanted = shape_.stages() - 1});
    } else if (action.microbatch < 0 || action.microbatch >= shape_.microbatches) {
      violations_.push_back({.rule = Rule::known_microbatch, .at = at, .wanted = shape_.microbatches - 1});
    } else if (action.slice != 0 || action.replica != 0) {
      violations_.push_back({.rule = Rule::whole_sequence, .at = at});
    } else if (rank_of(action.stage) != entry.rank) {
      violations_.push_back({.rule = Rule::on_its_rank, .at = at, .has = rank_of(action.stage)});
    } else {
      note_parts(entry, at, action.kind);
    }
  }

  void note_parts(const Entry& entry, const ActionRef& at, ComputeKind kind) {
    if (kind == ComputeKind::backward) whole_.add(at.stage);
    if (kind == ComputeKind::backward_input || kind == ComputeKind::backward_weight) split_.add(at.stage);
    for (const Part part : parts(kind)) {
      Entry& found = found_.at(static_cast<int>(part), at.stage, at.microbatch);
      if (found.position != kNowhere) {
        ActionRef first = ref_of(found);
        first.kind = kind_making(part);
        violations_.push_back({.rule = Rule::once, .at = at, .others = {first}});
        return;
      }
      found = entry;
    }
  }

  void find_missing() {
    for (int stage = 0; stage < shape_.stages(); ++stage)
      for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
        const auto lacks = [&](Part part) { return at(part, stage, microbatch).position == kNowhere; };
        const auto missing = [&](Kind kind) {
          violations_.push_back(
              {.rule = Rule::present,
               .at = {.rank = rank_of(stage), .kind = kind, .stage = stage, .microbatch = microbatch}});
        };
        if (lacks(Part::forward)) missing(Kind::forward);
        if (lacks(Part::input) && lacks(Part::weight) && has_whole_backwards(stage)) {
          missing(Kind::backward);
        } else {
          if (lacks(Part::input)) missing(Kind::backward_input);
          if (lacks(Part::weight)) missing(Kind::backward_weight);
        }
      }
  }

  /// A stage without backwards is treated like the other stages.
  bool has_whole_backwards(int stage) const {
    if (whole_.has(stage)) return true;
    return !split_.has(stage) && (whole_.any() || !split_.any());
  }

  const Entry& at(Part part, int stage, int microbatch) const {
    return found_.at(static_cast<int>(part), stage, microbatch);
  }
  const Entry& entry_of(const Needed& needed, const Action& action) const {
    return at(needed.part, needed.stage, action.microbatch);
  }
  const std::vector<Needed>& needs_of(const Action& action) const {
    return needs_[static_cast<std::size_t>(action.stage) * kComputeKinds + static_cast<std::size_t>(action.kind)];
  }
  /// The needs in the rule table, of each stage and kind: they are read for each action.
  void list_needs() {
    for (int stage = 0; stage < shape_.stages(); ++stage)
      for (std::size_t kind = 0; kind < kComputeKinds; ++kind) {
        std::vector<Needed>& needs = needs_.emplace_back();
        for (const Need& need : rule(kind_of(static_cast<ComputeKind>(kind))).needs) {
          const bool counts = need.condition.holds(stage_map_.facts(stage)),
                     is_before = need.where == Need::Where::here && is_of_rows(need.kind);
          if (!counts && !is_before) continue;
          const Computing needed = computing_of(need, stage);
          needs.push_back({part_of(needed.kind), needed.stage, counts, is_before});
        }
      }
  }

  void check_order(const Entry& entry, const Action& action) {
    for (const Needed& need : needs_of(action)) {
      if (!need.is_before) continue;
      const Entry& needed = entry_of(need, action);
      if (needed.position > entry.position)
        violations_.push_back({.rule = Rule::before, .at = ref_of(entry, action), .others = {ref_of(needed)}});
    }
  }

  void check_ascending(const Entry& entry, const Action& action) {
    for (const Part part : parts(action.kind)) {
      if (part == Part::forward || action.microbatch == 0) continue;
      const Entry& before = at(part, action.stage, action.microbatch - 1);
      if (before.position < entry.position) continue;
      violations_.push_back({.rule = Rule::ascending, .at = ref_of(entry, action), .others = {ref_of(before)}});
      return;
    }
  }

  /// Advances each rank as far as its needs are met. Ranks that cannot advance are deadlocked.
  void check_progress() {
    Progress progress(schedule_.ranks());
    while (const std::optional<int> rank = progress.next()) {
      const std::vector<Action>& row = schedule_.row(*rank);
      std::size_t& position = progress.reached(*rank);
      const Entry* waited = nullptr;
      while (position < row.size() && !(waited = waits_for(row[position], progress))) ++position;
      progress.advanced(*rank);
      if (waited) progress.waits(*rank, *waited);
    }
    for (int rank = 0; rank < schedule_.ranks(); ++rank) {
      const std::size_t position = progress.reached(rank);
      if (position == schedule_.row(rank).size()) continue;
      const Action& action = schedule_.row(rank)[position];
      violations_.push_back({.rule = Rule::reached,
                             .at = ref_of({rank, position}, action),
                             .others = {ref_of(*waits_for(action, progress))}});
    }
  }

  /// The first need that is not done; null if all are done.
  const Entry* waits_for(const Action& action, const Progress& progress) const {
    for (const Needed& need : needs_of(action)) {
      if (!need.counts) continue;
      const Entry& needed = entry_of(need, action);
      if (!progress.done(needed)) return &needed;
    }
    return nullptr;
  }

  static constexpr std::size_t kComputeKinds = 4;

  const Schedule& schedule_;
  const PipelineShape& shape_;
  StageMap stage_map_;
  std::vector<std::vector<Needed>> needs_; // by stage, then ComputeKind
  Cells<Entry> found_;                     // by Part
  Stages whole_, split_;                   // stages with a B; with an I or a W
  std::vector<Violation> violations_;
};

} // namespace

std::vector<Violation> verify(const Schedule& schedule, const PipelineShape& shape) {
  return RowsCheck(schedule, shape).run();
}

std::vector<Violation> verify_stage_map(const Schedule& schedule, const PipelineShape& shape) {
  return RowsCheck(schedule, shape).run_stage_map();
}

} // namespace triax::schedule
