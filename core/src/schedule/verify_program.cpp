// Verification of a rank's program: needs and slots, both from the rule table.
#include <map>

#include "schedule/verify.hpp"

namespace triax::schedule {

namespace {

/// Where the actions of a kind are: of one microbatch, of a stage, of the rank.
struct Extent {
  std::size_t first = 0, last = 0;
  int count = 0;
};

class ProgramCheck {
 public:
  explicit ProgramCheck(const Program& program) : program_(program) {}

  std::vector<Support> run() {
    const auto actions = program_.actions();
    for (std::size_t at = 0; at < actions.size(); ++at) note(at, actions[at]);
    for (std::size_t at = 0; at < actions.size(); ++at) {
      check_needs(at, actions[at]);
      check_slots(at, actions[at]);
    }
    if (has_backward_ && !extents_.contains({Kind::opt_step, -1, -1}))
      refusals_.push_back(Support::no("the program has backwards and no OPT_STEP"));
    if (has_backward_)
      for (const auto& [slot, microbatch] : held_)
        refusals_.push_back(Support::no("stage {}: pool {}, slot {} still holds microbatch {} at the end",
                                        std::get<0>(slot), name_of(std::get<1>(slot)), std::get<2>(slot), microbatch));
    return refusals_;
  }

 private:
  using Key = std::tuple<Kind, int, int>; // -1: any
  using SlotKey = std::tuple<int, Pool, int>;

  template <class... Args>
  void refuse(std::size_t at, std::string_view pattern, const Args&... arguments) {
    refusals_.push_back(
        Support::no("position {}, {}: {}", at, program_.label(static_cast<ActionId>(at)), text(pattern, arguments...)));
  }

  void note(std::size_t at, const ProgramAction& action) {
    if (action.kind == Kind::backward) {
      note_as(Kind::backward_input, at, action);
      note_as(Kind::backward_weight, at, action);
    } else {
      note_as(action.kind, at, action);
    }
    has_backward_ |= action.kind == Kind::backward || action.kind == Kind::backward_input;
  }
  void note_as(Kind kind, std::size_t at, const ProgramAction& action) {
    if (extend({kind, action.stage, action.microbatch}, at) > 1) refuse(at, "it is there twice");
    if (action.microbatch >= 0) extend({kind, action.stage, -1}, at);
    if (action.stage >= 0) extend({kind, -1, -1}, at);
  }
  int extend(const Key& key, std::size_t at) {
    Extent& extent = extents_.try_emplace(key, Extent{at, at, 0}).first->second;
    extent.last = at;
    return ++extent.count;
  }

  void check_needs(std::size_t at, const ProgramAction& action) {
    for (const Need& need : rule(action.kind).needs) {
      const bool everywhere = need.where == Need::Where::everywhere;
      const int stage = everywhere ? -1
                                   : action.stage + (need.where == Need::Where::stage_after) -
                                         (need.where == Need::Where::stage_before);
      if (!everywhere && (stage < program_.stages().front() || stage > program_.stages().back())) continue;
      const auto found = extents_.find({need.kind, stage, everywhere ? -1 : action.microbatch});
      const std::string what = everywhere ? rule(need.kind).name : action_text(need.kind, stage, action.microbatch);
      if (found == extents_.end()) {
        refuse(at, "it needs {}, which is not in the program", what);
      } else if (found->second.last >= at) {
        refuse(at, "it needs {}, which comes later, at position {}", what, found->second.last);
      }
    }
  }

  void check_slots(std::size_t at, const ProgramAction& action) {
    for (const Use& use : rule(action.kind).fills) {
      const int slot = (use.stage_offset == 0 ? action.own : action.handed)[static_cast<std::size_t>(use.pool)];
      const int stage = action.stage + use.stage_offset;
      if (slot >= 0) take(at, {stage, use.pool, slot}, action.microbatch);
    }
    for (const Pool pool : rule(action.kind).reads) {
      const int slot = action.own[static_cast<std::size_t>(pool)];
      const auto holder = held_.find({action.stage, pool, slot});
      if (slot >= 0 && (holder == held_.end() || holder->second != action.microbatch))
        refuse(at, "it reads slot {} of pool {}, which does not hold its microbatch", slot, name_of(pool));
    }
    for (const Pool pool : rule(action.kind).frees)
      held_.erase({action.stage, pool, action.own[static_cast<std::size_t>(pool)]});
  }

  /// In a program without backwards nothing waits for the slot, so the next forward may have it.
  void take(std::size_t at, const SlotKey& slot, int microbatch) {
    const auto [stage, pool, index] = slot;
    if (index >= program_.slots(stage, pool)) refuse(at, "slot {} of pool {} does not exist", index, name_of(pool));
    const auto [entry, added] = held_.try_emplace(slot, microbatch);
    if (!added && has_backward_)
      refuse(at, "slot {} of pool {} still holds microbatch {}", index, name_of(pool), entry->second);
    entry->second = microbatch;
  }

  const Program& program_;
  std::map<Key, Extent> extents_;
  std::map<SlotKey, int> held_;
  bool has_backward_ = false;
  std::vector<Support> refusals_;
};

} // namespace

std::vector<Support> verify(const Program& program) {
  return ProgramCheck(program).run();
}

} // namespace triax::schedule
