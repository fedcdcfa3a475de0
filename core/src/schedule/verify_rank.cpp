// One rank's program: its actions, then its slots.
#include "schedule/verify_rank.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "schedule/cells.hpp"

namespace triax::schedule {

namespace {

/// How many actions of a kind there are and where the last one is: of one microbatch, of a stage, of the rank.
struct Extent {
  std::size_t last = 0;
  int count = 0;
};

/// Of a pool of a stage: the first of its slots among those of all pools of the rank, and how many there are.
struct SlotRange {
  std::size_t first = 0;
  int count = 0;
};

struct SlotState {
  int holds = -1;                    // microbatch; -1: none
  std::optional<ActionId> touched{}; // by the transfer that was there last
};

bool serves_forward(Kind kind) {
  return kind == Kind::forward || kind == Kind::send_f || kind == Kind::recv_f;
}

class RankCheck {
 public:
  RankCheck(const Program& program, const Purpose& purpose)
      : program_(program),
        stage_map_(program.stage_map()),
        purpose_(purpose),
        local_(static_cast<std::size_t>(stage_map_.stages()), -1),
        extents_(kKinds, 1 + static_cast<int>(program.stages().size()), 1 + purpose.shape.microbatches, Extent{}),
        last_gradient_(program.stages().size(), {-1, -1}),
        pending_(program.actions().size()) {
    for (const int stage : program.stages()) {
      local_[static_cast<std::size_t>(stage)] = static_cast<int>(slots_of_.size());
      std::array<SlotRange, kPools>& of = slots_of_.emplace_back();
      for (int pool = 0; pool < kPools; ++pool) {
        const int count = program.slots(stage, static_cast<Pool>(pool));
        of[static_cast<std::size_t>(pool)] = {slots_.size(), count};
        slots_.resize(slots_.size() + static_cast<std::size_t>(count));
      }
    }
  }

  std::vector<Support> run() {
    const auto actions = program_.actions();
    for (std::size_t at = 0; at < actions.size(); ++at) note(at, actions[at]);
    if (refusals_.empty()) check_complete();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      if (!is_known(actions[at])) continue;
      check_needs(at, actions[at]);
      check_waits(at, actions[at]);
      check_slots(at, actions[at]);
      check_cap(at, actions[at]);
    }
    check_end();
    return std::move(refusals_);
  }

 private:
  struct SlotKey {
    int stage;
    Pool pool;
    int index;
  };

  /// Of the rank's stages; -1: it is not one of them.
  int local(int stage) const {
    return stage < 0 || stage >= stage_map_.stages() ? -1 : local_[static_cast<std::size_t>(stage)];
  }
  /// -1: of all stages, of all microbatches. The stage must be the rank's.
  Extent& extent(Kind kind, int stage, int microbatch) {
    return extents_.at(static_cast<int>(kind), stage < 0 ? 0 : 1 + local(stage), 1 + microbatch);
  }

  template <class... Args>
  void refuse(std::size_t at, std::string_view pattern, const Args&... arguments) {
    refusals_.push_back(Support::no("rank {}, position {}, {}: {}", program_.rank(), at,
                                    program_.label(static_cast<ActionId>(at)), text(pattern, arguments...)));
  }

  /// Whether stage and microbatch are the rank's and the step's.
  bool is_known(const ProgramAction& action) const {
    const Scope scope = rule(action.kind).scope;
    return (scope == Scope::rank || local(action.stage) >= 0) &&
           (scope != Scope::microbatch || action.microbatch >= 0) && action.microbatch < purpose_.shape.microbatches;
  }

  void note(std::size_t at, const ProgramAction& action) {
    const Scope scope = rule(action.kind).scope;
    if (scope != Scope::rank && local(action.stage) < 0)
      return refuse(at, "stage {} is not on this rank", action.stage);
    if (scope == Scope::microbatch && action.microbatch < 0) return refuse(at, "it names no microbatch");
    if (action.microbatch >= purpose_.shape.microbatches)
      return refuse(at, "there is no microbatch {}: the last is {}", action.microbatch,
                    purpose_.shape.microbatches - 1);
    if (purpose_.forward_only && !serves_forward(action.kind)) return refuse(at, "an evaluation runs forwards alone");
    if (action.kind == Kind::backward) {
      note_as(Kind::backward_input, at, action);
      note_as(Kind::backward_weight, at, action);
    } else {
      note_as(action.kind, at, action);
    }
    if (is_transfer(action.kind) && action.microbatch >= 0) check_peer(at, action);
  }

  void note_as(Kind kind, std::size_t at, const ProgramAction& action) {
    if (extend(kind, action.stage, action.microbatch, at) > 1) return refuse(at, "it is there twice");
    if (kind == Kind::backward_input || kind == Kind::backward_weight) check_ascending(kind, at, action);
    if (action.microbatch >= 0) extend(kind, action.stage, -1, at);
    if (action.stage >= 0) extend(kind, -1, -1, at);
  }
  int extend(Kind kind, int stage, int microbatch, std::size_t at) {
    Extent& of = extent(kind, stage, microbatch);
    of.last = at;
    return ++of.count;
  }

  void check_ascending(Kind kind, std::size_t at, const ProgramAction& action) {
    const bool input = kind == Kind::backward_input;
    int& last = last_gradient_[static_cast<std::size_t>(local(action.stage))][input ? 0 : 1];
    if (last > action.microbatch)
      refuse(at,
             "the {} gradient of microbatch {} came before; gradients of a stage are added in ascending order of "
             "microbatches, so that every schedule gives the same bits",
             input ? "input" : "weight", last);
    last = action.microbatch;
  }

  void check_peer(std::size_t at, const ProgramAction& action) {
    const bool to_after = action.kind == Kind::send_f || action.kind == Kind::recv_b;
    if (!stage_map_.holds(to_after ? If::after_elsewhere : If::before_elsewhere, action.stage))
      return refuse(at, "the stage {} it is not on another rank", to_after ? "after" : "before");
    const int peer = stage_map_.rank_of(action.stage + (to_after ? 1 : -1));
    if (peer != action.peer) refuse(at, "it names rank {}, and the stage is on rank {}", action.peer, peer);
  }

  /// Every forward has a whole backward, and what a neighbour on another rank waits for is sent.
  void check_complete() {
    for (const int stage : program_.stages()) {
      for (int microbatch = 0; microbatch < purpose_.shape.microbatches; ++microbatch) {
        demand(Kind::forward, stage, microbatch);
        if (stage_map_.holds(If::after_elsewhere, stage)) demand(Kind::send_f, stage, microbatch);
        if (purpose_.forward_only) continue;
        demand(Kind::backward_input, stage, microbatch);
        demand(Kind::backward_weight, stage, microbatch);
        if (stage_map_.holds(If::before_elsewhere, stage)) demand(Kind::send_b, stage, microbatch);
      }
      if (!purpose_.forward_only) demand(Kind::reduce_grad, stage, -1);
    }
    if (!purpose_.forward_only) demand(Kind::opt_step, -1, -1);
  }
  void demand(Kind kind, int stage, int microbatch) {
    if (extent(kind, stage, microbatch).count == 0)
      refusals_.push_back(Support::no("rank {}: {} is missing", program_.rank(), action_text(kind, stage, microbatch)));
  }

  void check_needs(std::size_t at, const ProgramAction& action) {
    for (const Need& need : rule(action.kind).needs) {
      const bool everywhere = need.where == Need::Where::everywhere;
      if (!everywhere && !stage_map_.holds(need.condition, action.stage)) continue;
      const int stage = everywhere ? -1 : stage_of(need, action.stage);
      if (is_transfer(action.kind) && stage != action.stage) continue; // of the other end: verify(programs)
      const Extent& found = extent(need.kind, stage, everywhere ? -1 : action.microbatch);
      if (found.count > 0 && found.last < at) continue;
      const std::string what = everywhere ? rule(need.kind).name : action_text(need.kind, stage, action.microbatch);
      if (found.count == 0) {
        refuse(at, "it needs {}, which is not in the program", what);
      } else {
        refuse(at, "it needs {}, which comes later, at position {}", what, found.last);
      }
    }
  }

  /// The executor makes compute actions wait, for transfers posted before.
  void check_waits(std::size_t at, const ProgramAction& action) {
    if (is_transfer(action.kind) && !action.waits.empty()) refuse(at, "it is posted, and cannot wait");
    for (const ActionId waited : action.waits) {
      if (waited >= at) {
        refuse(at, "it waits for position {}, which comes later", waited);
      } else if (!is_transfer(program_.actions()[waited].kind)) {
        refuse(at, "it waits for {}, which is no transfer", program_.label(waited));
      }
      if (waited < pending_.size() && pending_[waited]) {
        pending_[waited] = false;
        --count_pending_;
      }
    }
  }

  /// Whether something fills the pool of this stage; the pipeline's ends lack a neighbour.
  bool there(Pool pool, int stage) const {
    switch (pool) {
      case Pool::input_f:
      case Pool::input_i:
      case Pool::input_w:
        return stage > 0;
      case Pool::gradient:
        return stage + 1 < stage_map_.stages();
      default:
        return true;
    }
  }

  void check_slots(std::size_t at, const ProgramAction& action) {
    for (const Use& use : rule(action.kind).fills) {
      if (!stage_map_.holds(use.condition, action.stage)) continue;
      const int slot = (use.stage_offset == 0 ? action.own : action.handed)[static_cast<std::size_t>(use.pool)];
      fill(at, {action.stage + use.stage_offset, use.pool, slot}, action);
    }
    for (const Pool pool : rule(action.kind).reads) {
      const int slot = action.own[static_cast<std::size_t>(pool)];
      if (slot >= 0 || there(pool, action.stage)) read(at, {action.stage, pool, slot}, action);
    }
    for (const Pool pool : frees(action.kind, purpose_.forward_only))
      if (SlotState* state = state_of({action.stage, pool, action.own[static_cast<std::size_t>(pool)]}))
        state->holds = -1;
    if (is_transfer(action.kind)) {
      pending_[at] = true;
      ++count_pending_;
    }
    check_joined(at, action);
  }

  /// Null if there is no such slot.
  SlotState* state_of(const SlotKey& slot) {
    const int stage = local(slot.stage);
    if (stage < 0) return nullptr;
    const SlotRange& range = slots_of_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(slot.pool)];
    if (slot.index < 0 || slot.index >= range.count) return nullptr;
    return &slots_[range.first + static_cast<std::size_t>(slot.index)];
  }

  /// No transfer may touch the slot still.
  void touch(std::size_t at, const SlotKey& slot, SlotState& state, const ProgramAction& action) {
    if (state.touched && pending_[*state.touched])
      refuse(at, "{} may still be under way in slot {} of pool {}, and it does not wait for it",
             program_.label(*state.touched), slot.index, name_of(slot.pool));
    if (is_transfer(action.kind)) state.touched = static_cast<ActionId>(at);
  }

  void fill(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    if (slot.index < 0) return refuse(at, "it has no slot of pool {} to fill", name_of(slot.pool));
    SlotState* state = state_of(slot);
    if (!state) return refuse(at, "slot {} of pool {} does not exist", slot.index, name_of(slot.pool));
    touch(at, slot, *state, action);
    if (state->holds >= 0)
      refuse(at, "slot {} of pool {} still holds microbatch {}", slot.index, name_of(slot.pool), state->holds);
    state->holds = action.microbatch;
  }
  void read(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    SlotState* state = state_of(slot);
    if (!state || state->holds != action.microbatch)
      return refuse(at, "it reads slot {} of pool {}, which does not hold its microbatch", slot.index,
                    name_of(slot.pool));
    touch(at, slot, *state, action);
  }

  void check_joined(std::size_t at, const ProgramAction& action) {
    if (!rule(action.kind).joins || count_pending_ == 0) return;
    const auto first = std::ranges::find(pending_, true) - pending_.begin();
    refuse(at, "it does not wait for {}, which was posted before", program_.label(static_cast<ActionId>(first)));
  }

  void check_cap(std::size_t at, const ProgramAction& action) {
    if (action.kind == Kind::backward || action.kind == Kind::backward_weight) --kept_;
    if (action.kind != Kind::forward || purpose_.forward_only) return;
    ++kept_;
    if (purpose_.cap && kept_ == *purpose_.cap + 1)
      refuse(at, "it is one more than the {} microbatches that a rank may keep, counted per stage", *purpose_.cap);
  }

  void check_end() {
    for (const int stage : program_.stages())
      for (int pool = 0; pool < kPools; ++pool)
        for (int index = 0; index < program_.slots(stage, static_cast<Pool>(pool)); ++index) {
          const SlotState& state = *state_of({stage, static_cast<Pool>(pool), index});
          if (state.holds >= 0)
            refusals_.push_back(Support::no("rank {}, stage {}: pool {}, slot {} still holds microbatch {} at the end",
                                            program_.rank(), stage, name_of(static_cast<Pool>(pool)), index,
                                            state.holds));
        }
  }

  const Program& program_;
  const StageMap& stage_map_;
  const Purpose& purpose_;
  int kept_ = 0;
  std::vector<int> local_;                        // by stage: its number among the rank's
  Cells<Extent> extents_;                         // by kind, stage and microbatch, each counted from 1; 0: all
  std::vector<std::array<int, 2>> last_gradient_; // by stage: the last microbatch of I, of W
  std::vector<bool> pending_;                     // by action: a transfer not waited for
  std::size_t count_pending_ = 0;
  std::vector<std::array<SlotRange, kPools>> slots_of_; // by stage
  std::vector<SlotState> slots_;
  std::vector<Support> refusals_;
};

} // namespace

std::vector<Support> verify_rank(const Program& program, const Purpose& purpose) {
  return RankCheck(program, purpose).run();
}

} // namespace triax::schedule
