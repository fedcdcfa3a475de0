// Verification of a scheduler's rows, over all ranks.
#include <array>
#include <limits>

#include "schedule/cells.hpp"
#include "schedule/verify.hpp"

namespace triax::schedule {

namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

struct Place {
  int rank = 0;
  std::size_t position = kNowhere;
};

/// F, and the two halves of a backward; B is both halves.
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

const char* words(Part part) {
  switch (part) {
    case Part::forward:
      return "forward";
    case Part::input:
      return "input gradient";
    case Part::weight:
      break;
  }
  return "weight gradient";
}

std::string part_text(Part part, int stage, int microbatch) {
  static constexpr Kind kKindOf[] = {Kind::forward, Kind::backward_input, Kind::backward_weight};
  return action_text(kKindOf[static_cast<int>(part)], stage, microbatch);
}

class RowsCheck {
 public:
  RowsCheck(const Schedule& schedule, const PipelineShape& shape) : schedule_(schedule), shape_(shape) {}

  std::vector<Support> run() {
    if (!shape_fits()) return refusals_;
    stage_map_ = StageMap(schedule_.stage_rank()[0]);
    found_ = Cells<Place>(3, shape_.stages(), shape_.microbatches, Place{});
    for_each_action([this](const Place& place, const Action& action) { note(place, action); });
    if (refusals_.empty()) find_missing();
    if (!refusals_.empty()) return refusals_;
    for_each_action([this](const Place& place, const Action& action) { check_order(place, action); });
    const bool in_order = refusals_.empty();
    for_each_action([this](const Place& place, const Action& action) { check_ascending(place, action); });
    if (in_order) check_progress();
    return refusals_;
  }

 private:
  template <class Visit>
  void for_each_action(Visit visit) {
    for (int rank = 0; rank < schedule_.ranks(); ++rank)
      for (std::size_t position = 0; position < schedule_.row(rank).size(); ++position)
        visit(Place{rank, position}, schedule_.row(rank)[position]);
  }

  template <class... Args>
  void refuse(const Place& place, const Action& action, std::string_view pattern, const Args&... arguments) {
    refusals_.push_back(Support::no("rank {}, position {}, {}: {}", place.rank, place.position, to_text(action),
                                    text(pattern, arguments...)));
  }

  bool shape_fits() {
    if (schedule_.ranks() != shape_.pipeline)
      refusals_.push_back(
          Support::no("the schedule has {} rows for parallel.pipeline = {}", schedule_.ranks(), shape_.pipeline));
    if (schedule_.delay != 0)
      refusals_.push_back(
          Support::no("the schedule lets weights lag {} steps behind: this version runs synchronous "
                      "schedules",
                      schedule_.delay));
    if (schedule_.stage_rank().size() != 1) {
      refusals_.push_back(
          Support::no("the schedule has {} replicas: this version runs one", schedule_.stage_rank().size()));
      return false;
    }
    const std::vector<int>& ranks = schedule_.stage_rank()[0];
    if (static_cast<int>(ranks.size()) != shape_.stages())
      refusals_.push_back(
          Support::no("the schedule places {} stages, but there are {}", ranks.size(), shape_.stages()));
    for (std::size_t stage = 0; stage < ranks.size(); ++stage)
      if (ranks[stage] < 0 || ranks[stage] >= shape_.pipeline)
        refusals_.push_back(
            Support::no("the schedule places stage {} on rank {} of {}", stage, ranks[stage], shape_.pipeline));
    return refusals_.empty();
  }

  int rank_of(int stage) const { return stage_map_.rank_of(stage); }

  void note(const Place& place, const Action& action) {
    if (action.kind > ComputeKind::backward_weight) { // has no text
      refusals_.push_back(Support::no("rank {}, position {}: an action of kind {}, which is none of F, B, I, W",
                                      place.rank, place.position, static_cast<int>(action.kind)));
      return;
    }
    if (action.stage < 0 || action.stage >= shape_.stages())
      return refuse(place, action, "there is no stage {}: the last is {}", action.stage, shape_.stages() - 1);
    if (action.microbatch < 0 || action.microbatch >= shape_.microbatches)
      return refuse(place, action, "there is no microbatch {}: the last is {}", action.microbatch,
                    shape_.microbatches - 1);
    if (action.slice != 0 || action.replica != 0)
      return refuse(place, action, "this version runs whole sequences through one pipeline");
    if (rank_of(action.stage) != place.rank)
      return refuse(place, action, "stage {} is on rank {}", action.stage, rank_of(action.stage));
    for (const Part part : parts(action.kind)) {
      Place& found = found_.at(static_cast<int>(part), action.stage, action.microbatch);
      if (found.position != kNowhere)
        return refuse(place, action, "the {} of stage {}, microbatch {} is at position {} already", words(part),
                      action.stage, action.microbatch, found.position);
      found = place;
    }
  }

  void find_missing() {
    for (int stage = 0; stage < shape_.stages(); ++stage)
      for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch)
        for (const Part part : {Part::forward, Part::input, Part::weight})
          if (at(part, stage, microbatch).position == kNowhere)
            refusals_.push_back(Support::no("rank {}: {} is missing, the {} of stage {}, microbatch {}", rank_of(stage),
                                            part_text(part, stage, microbatch), words(part), stage, microbatch));
  }

  const Place& at(Part part, int stage, int microbatch) const {
    return found_.at(static_cast<int>(part), stage, microbatch);
  }
  const Place& place_of(const Need& need, const Action& action) const {
    const Computing needed = computing_of(need, action.stage);
    return at(part_of(needed.kind), needed.stage, action.microbatch);
  }
  static std::string need_text(const Need& need, const Action& action) {
    const Computing needed = computing_of(need, action.stage);
    return part_text(part_of(needed.kind), needed.stage, action.microbatch);
  }
  bool counts(const Need& need, const Action& action) const { return stage_map_.holds(need.condition, action.stage); }

  void check_order(const Place& place, const Action& action) {
    for (const Need& need : rule(kind_of(action.kind)).needs) {
      if (need.where != Need::Where::here || is_transfer(need.kind)) continue;
      const Place& needed = place_of(need, action);
      if (needed.position > place.position)
        refuse(place, action, "it needs {}, which comes later, at position {}", need_text(need, action),
               needed.position);
    }
  }

  void check_ascending(const Place& place, const Action& action) {
    for (const Part part : parts(action.kind)) {
      if (part == Part::forward || action.microbatch == 0) continue;
      const Place& before = at(part, action.stage, action.microbatch - 1);
      if (before.position > place.position)
        return refuse(
            place, action,
            "the {} of microbatch {} comes later, at position {}; gradients of a stage are added in ascending "
            "order of microbatches, so that every schedule gives the same bits",
            words(part), action.microbatch - 1, before.position);
    }
  }

  /// Lets every rank go on as far as what it needs is there; a round in which none moves is the end or a deadlock.
  void check_progress() {
    std::vector<std::size_t> reached(static_cast<std::size_t>(schedule_.ranks()), 0);
    const auto done = [&reached](const Place& place) {
      return place.position < reached[static_cast<std::size_t>(place.rank)];
    };
    const auto waits_for = [&](const Action& action) -> const Need* {
      for (const Need& need : rule(kind_of(action.kind)).needs) {
        if (counts(need, action) && !done(place_of(need, action))) return &need;
      }
      return nullptr;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int turn = 0; turn < 2 * schedule_.ranks(); ++turn) { // up with the forwards, down with the backwards
        const int rank = turn < schedule_.ranks() ? turn : 2 * schedule_.ranks() - 1 - turn;
        std::size_t& position = reached[static_cast<std::size_t>(rank)];
        const std::vector<Action>& row = schedule_.row(rank);
        for (; position < row.size() && !waits_for(row[position]); ++position) moved = true;
      }
    }
    for (int rank = 0; rank < schedule_.ranks(); ++rank) {
      const std::size_t position = reached[static_cast<std::size_t>(rank)];
      if (position == schedule_.row(rank).size()) continue;
      const Action& action = schedule_.row(rank)[position];
      const Need& need = *waits_for(action);
      const Place& needed = place_of(need, action);
      refuse({rank, position}, action, "it waits for {} at position {} of rank {}, which is never reached",
             to_text(schedule_.row(needed.rank)[needed.position]), needed.position, needed.rank);
    }
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  StageMap stage_map_;
  Cells<Place> found_; // by Part
  std::vector<Support> refusals_;
};

} // namespace

std::vector<Support> verify(const Schedule& schedule, const PipelineShape& shape) {
  return RowsCheck(schedule, shape).run();
}

} // namespace triax::schedule
