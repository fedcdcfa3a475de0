// SPDX-License-Identifier: Apache-2.0
// Verification of one rank's program: its actions, then its slots.
#include "schedule/verify_rank.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "schedule/dense_table.hpp"
#include "schedule/stage_slots.hpp"

namespace triax::schedule {

namespace {

using Rule = Violation::Rule;

/// Number of actions of a kind and position of the last one: for one microbatch, a stage, or the rank.
struct Tally {
  std::size_t last = 0;
  int count = 0;
};

/// Slots of one pool of a stage: index of the first one in the list of all slots of the rank, and their number.
struct SlotRange {
  std::size_t first = 0;
  int count = 0;
};

struct SlotState {
  int holds = -1;                    // microbatch in the slot; -1: none
  std::optional<ActionId> touched{}; // the last transfer that used the slot
};

/// A stage has as many of these as its uses need: StageSlots checks them.
bool repeats(Kind kind) {
  return kind == Kind::unshard || kind == Kind::reshard;
}

bool serves_forward(Kind kind) {
  return kind == Kind::forward || kind == Kind::send_f || kind == Kind::recv_f || kind == Kind::gather_f ||
         repeats(kind);
}

class RankCheck {
 public:
  RankCheck(const Program& program, const Purpose& purpose)
      : program_(program),
        stage_map_(program.stage_map()),
        purpose_(purpose),
        tallies_(kKinds, 1 + static_cast<int>(program.stages().size()), 1 + purpose.shape.microbatches, Tally{}),
        last_gradient_(program.stages().size(), {-1, -1}),
        whole_(program.stages().size()),
        pending_(program.actions().size()),
        stage_slots_(program) {
    for (const int stage : program.stages()) {
      std::array<SlotRange, kPools>& of = slots_of_.emplace_back();
      for (int pool = 0; pool < kPools; ++pool) {
        const int count = program.slots(stage, static_cast<Pool>(pool));
        of[static_cast<std::size_t>(pool)] = {slots_.size(), count};
        slots_.resize(slots_.size() + static_cast<std::size_t>(count));
      }
    }
  }

  std::vector<Violation> run() {
    const auto actions = program_.actions();
    for (std::size_t at = 0; at < actions.size(); ++at) note(at, actions[at]);
    if (violations_.empty()) check_complete();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      if (!is_known(actions[at])) continue;
      check_needs(at, actions[at]);
      check_waits(at, actions[at]);
      check_slots(at, actions[at]);
      check_cap(at, actions[at]);
      if (actions[at].kind == Kind::recompute) check_next_pass(at, actions[at]);
    }
    check_end();
    stage_slots_.check_end(violations_);
    return std::move(violations_);
  }

 private:
  struct SlotKey {
    int stage;
    Pool pool;
    int index;
  };

  Facts facts(int stage) const {
    return facts_of(stage_map_, stage, program_.boundaries(), purpose_.forward_only, program_.recomputes(stage));
  }
  /// Those of the stage of a known action, and those of the action.
  Facts facts(const ProgramAction& action) {
    if (rule(action.kind).scope == Scope::rank) return 0;
    const bool is_split = action.kind == Kind::recompute &&
                          tally(Kind::backward, action.stage, action.microbatch).count == 0 &&
                          tally(Kind::backward_input, action.stage, action.microbatch).count > 0;
    return static_cast<Facts>(facts(action.stage) | (is_split ? kSplit : 0));
  }

  /// Number among the rank's stages; -1: not on this rank.
  int local(int stage) const {
    const bool here = stage >= 0 && stage < stage_map_.stages() && stage_map_.rank_of(stage) == program_.rank();
    return here ? stage_map_.number_on_rank(stage) : -1;
  }
  /// Stage -1: all stages; microbatch -1: all microbatches. The stage must be on the rank.
  Tally& tally(Kind kind, int stage, int microbatch) {
    return tallies_.at(static_cast<int>(kind), stage < 0 ? 0 : 1 + local(stage), 1 + microbatch);
  }

  ActionRef ref_of(std::size_t at) const {
    const ProgramAction& action = program_.actions()[at];
    return {program_.rank(), static_cast<ActionId>(at), action.kind, action.stage, action.microbatch};
  }
  void refuse(Rule rule, std::size_t at, std::vector<ActionRef> others = {}) {
    violations_.push_back({.rule = rule, .at = ref_of(at), .others = std::move(others)});
  }
  void refuse(Rule rule, std::size_t at, int has, int wanted) {
    violations_.push_back({.rule = rule, .at = ref_of(at), .has = has, .wanted = wanted});
  }
  void refuse(Rule rule, std::size_t at, const SlotKey& slot, int has = 0) {
    violations_.push_back({.rule = rule, .at = ref_of(at), .has = has, .pool = slot.pool, .slot = slot.index});
  }

  /// Whether the rank has the stage and the step has the microbatch.
  bool is_known(const ProgramAction& action) const {
    const Scope scope = rule(action.kind).scope;
    return (scope == Scope::rank || local(action.stage) >= 0) &&
           (scope != Scope::microbatch || action.microbatch >= 0) && action.microbatch < purpose_.shape.microbatches;
  }

  void note(std::size_t at, const ProgramAction& action) {
    const Scope scope = rule(action.kind).scope;
    if (scope != Scope::rank && local(action.stage) < 0)
      return action.stage >= 0 && action.stage < stage_map_.stages()
                 ? refuse(Rule::on_its_rank, at, stage_map_.rank_of(action.stage), program_.rank())
                 : refuse(Rule::known_stage, at, 0, stage_map_.stages() - 1);
    if (scope == Scope::microbatch && action.microbatch < 0) return refuse(Rule::names_microbatch, at);
    if (action.microbatch >= purpose_.shape.microbatches)
      return refuse(Rule::known_microbatch, at, 0, purpose_.shape.microbatches - 1);
    if (purpose_.forward_only && !serves_forward(action.kind)) return refuse(Rule::forward_alone, at);
    if (repeats(action.kind)) return;
    if (action.kind == Kind::backward) {
      whole_[static_cast<std::size_t>(local(action.stage))] = true;
      count_one(Kind::backward, action.stage, action.microbatch, at);
      if (note_as(Kind::backward_input, at, action)) note_as(Kind::backward_weight, at, action);
    } else {
      note_as(action.kind, at, action);
    }
    if (is_transfer(action.kind) && action.microbatch >= 0) check_peer(at, action);
  }

  /// Counts the action; returns false if it added a violation.
  bool note_as(Kind kind, std::size_t at, const ProgramAction& action) {
    const std::size_t first = tally(kind, action.stage, action.microbatch).last;
    if (count_one(kind, action.stage, action.microbatch, at) > 1) {
      ActionRef twice = ref_of(first);
      twice.kind = kind;
      refuse(Rule::once, at, {twice});
      return false;
    }
    if (action.microbatch >= 0) count_one(kind, action.stage, -1, at);
    if (action.stage >= 0) count_one(kind, -1, -1, at);
    return (kind != Kind::backward_input && kind != Kind::backward_weight) || is_ascending(kind, at, action);
  }
  int count_one(Kind kind, int stage, int microbatch, std::size_t at) {
    Tally& of = tally(kind, stage, microbatch);
    of.last = at;
    return ++of.count;
  }

  bool is_ascending(Kind kind, std::size_t at, const ProgramAction& action) {
    int& last = last_gradient_[static_cast<std::size_t>(local(action.stage))][kind == Kind::backward_input ? 0 : 1];
    const int before = std::exchange(last, action.microbatch);
    if (before > action.microbatch) refuse(Rule::ascending, at, {ref_of(tally(kind, action.stage, before).last)});
    return before <= action.microbatch;
  }

  void check_peer(std::size_t at, const ProgramAction& action) {
    const int offset = peer_offset(action.kind);
    if (!stage_map_.has(action.stage, offset > 0 ? kAfterElsewhere : kBeforeElsewhere)) {
      const int neighbour = action.stage + offset;
      return refuse(Rule::to_another_rank, at, neighbour >= 0 && neighbour < stage_map_.stages() ? 1 : 0, offset);
    }
    const int peer = stage_map_.rank_of(action.stage + offset);
    if (peer != action.peer) refuse(Rule::to_the_right_rank, at, action.peer, peer);
  }

  /// Every forward needs a complete backward, and the tensors for a neighbour on another rank must be sent.
  void check_complete() {
    for (const int stage : program_.stages()) {
      for (int microbatch = 0; microbatch < purpose_.shape.microbatches; ++microbatch) {
        demand(Kind::forward, stage, microbatch);
        if (stage_map_.has(stage, kAfterElsewhere)) demand(Kind::send_f, stage, microbatch);
        if (purpose_.forward_only) continue;
        demand_backward(stage, microbatch);
        if (stage_map_.has(stage, kBeforeElsewhere)) demand(Kind::send_b, stage, microbatch);
      }
      if (purpose_.forward_only) continue;
      demand(Kind::reduce_grad, stage, -1);
      demand(Kind::opt_step, stage, -1);
      if (gathers_updates(program_.sharding())) demand(Kind::gather_param, stage, -1);
    }
  }
  void demand(Kind kind, int stage, int microbatch) {
    if (tally(kind, stage, microbatch).count == 0) refuse_missing(kind, stage, microbatch);
  }
  void demand_backward(int stage, int microbatch) {
    const bool any = tally(Kind::backward_input, stage, microbatch).count > 0 ||
                     tally(Kind::backward_weight, stage, microbatch).count > 0;
    if (!any && has_whole_backwards(stage)) return refuse_missing(Kind::backward, stage, microbatch);
    demand(Kind::backward_input, stage, microbatch);
    demand(Kind::backward_weight, stage, microbatch);
  }
  void refuse_missing(Kind kind, int stage, int microbatch) {
    violations_.push_back({.rule = Rule::present,
                           .at = {.rank = program_.rank(), .kind = kind, .stage = stage, .microbatch = microbatch}});
  }

  /// Whether a missing backward is reported as B, and not as I and W.
  bool has_whole_backwards(int stage) {
    const bool any = tally(Kind::backward_input, stage, -1).count + tally(Kind::backward_weight, stage, -1).count > 0;
    return whole_[static_cast<std::size_t>(local(stage))] || !any;
  }

  void check_needs(std::size_t at, const ProgramAction& action) {
    std::optional<ActionRef> last_need; // the last reported need: a whole backward satisfies two needs
    for (const Need& need : rule(action.kind).needs) {
      const bool everywhere = need.where == Need::Where::everywhere;
      if (!everywhere && !need.condition.holds(facts(action.stage))) continue;
      const int stage = everywhere ? -1 : stage_of(need, action.stage);
      if (is_transfer(action.kind) && stage != action.stage) continue; // need of the other end: see verify(programs)
      const Tally& found = tally(need.kind, stage, everywhere ? -1 : action.microbatch);
      if (found.count > 0 && found.last < at) continue;
      const ActionRef needed = found.count > 0 ? ref_of(found.last) : nowhere(need.kind, stage, action.microbatch);
      if (last_need && last_need->kind == needed.kind && last_need->position == needed.position) continue;
      refuse(Rule::before, at, {needed});
      last_need = needed;
    }
  }
  ActionRef nowhere(Kind kind, int stage, int microbatch) {
    const bool half = kind == Kind::backward_input || kind == Kind::backward_weight;
    return {.rank = program_.rank(),
            .kind = half && has_whole_backwards(stage) ? Kind::backward : kind,
            .stage = stage,
            .microbatch = microbatch};
  }

  /// Only compute actions may wait, and only for earlier transfers.
  void check_waits(std::size_t at, const ProgramAction& action) {
    if (is_transfer(action.kind) && !action.waits.empty()) refuse(Rule::post_waits_for_none, at);
    for (const ActionId waited : action.waits) {
      if (waited >= at) {
        refuse(Rule::waits_for_earlier, at, {{.rank = program_.rank(), .position = waited}});
      } else if (!is_transfer(program_.actions()[waited].kind)) {
        refuse(Rule::waits_for_transfer, at, {ref_of(waited)});
      }
      stage_slots_.wait_for(waited);
      if (waited < pending_.size() && pending_[waited]) {
        pending_[waited] = false;
        --count_pending_;
      }
    }
  }

  /// Whether an action fills the pool on this stage; the ends of the pipeline have only one neighbour.
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
    const Facts all = facts(action);
    for (const Use& use : rule(action.kind).fills) {
      if (!use.condition.holds(all)) continue;
      const int slot = (use.stage_offset == 0 ? action.own : action.handed)[static_cast<std::size_t>(use.pool)];
      fill(at, {action.stage + use.stage_offset, use.pool, slot}, action);
    }
    for (const Use& use : rule(action.kind).reads) {
      const int slot = action.own[static_cast<std::size_t>(use.pool)];
      if (use.condition.holds(all) && (slot >= 0 || there(use.pool, action.stage)))
        read(at, {action.stage, use.pool, slot}, action);
    }
    for (const Use& use : rule(action.kind).frees)
      if (use.condition.holds(all))
        if (SlotState* state = state_of({action.stage, use.pool, action.own[static_cast<std::size_t>(use.pool)]}))
          state->holds = -1;
    stage_slots_.check(at, violations_);
    if (is_transfer(action.kind)) {
      pending_[at] = true;
      ++count_pending_;
    }
    check_joined(at, action);
  }

  /// Null if the slot does not exist.
  SlotState* state_of(const SlotKey& slot) {
    const int stage = local(slot.stage);
    if (stage < 0) return nullptr;
    const SlotRange& range = slots_of_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(slot.pool)];
    if (slot.index < 0 || slot.index >= range.count) return nullptr;
    return &slots_[range.first + static_cast<std::size_t>(slot.index)];
  }

  /// A pending transfer must not use the slot.
  void touch(std::size_t at, const SlotKey& slot, SlotState& state, const ProgramAction& action) {
    if (state.touched && pending_[*state.touched])
      violations_.push_back({.rule = Rule::slot_settled,
                             .at = ref_of(at),
                             .others = {ref_of(*state.touched)},
                             .pool = slot.pool,
                             .slot = slot.index});
    if (is_transfer(action.kind)) state.touched = static_cast<ActionId>(at);
  }

  void fill(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    if (slot.index < 0) return refuse(Rule::slot_named, at, slot);
    SlotState* state = state_of(slot);
    if (!state) return refuse(Rule::slot_exists, at, slot);
    touch(at, slot, *state, action);
    if (state->holds >= 0) refuse(Rule::slot_free, at, slot, state->holds);
    state->holds = action.microbatch;
  }
  void read(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    SlotState* state = state_of(slot);
    if (!state || state->holds != action.microbatch) return refuse(Rule::slot_filled, at, slot);
    touch(at, slot, *state, action);
  }

  void check_joined(std::size_t at, const ProgramAction& action) {
    if (!rule(action.kind).joins || count_pending_ == 0) return;
    const auto first = std::ranges::find(pending_, true) - pending_.begin();
    refuse(Rule::joined, at, {ref_of(static_cast<std::size_t>(first))});
  }

  /// All passes of the rank share the memory into which R writes.
  void check_next_pass(std::size_t at, const ProgramAction& action) {
    const std::span<const ProgramAction> actions = program_.actions();
    std::size_t next = at + 1;
    while (next < actions.size() && !runs_layers(actions[next].kind)) ++next;
    if (next == actions.size()) return refuse(Rule::next_pass, at);
    const ProgramAction& pass = actions[next];
    if (!begins_backward(pass.kind) || pass.stage != action.stage || pass.microbatch != action.microbatch)
      refuse(Rule::next_pass, at, {ref_of(next)});
  }

  void check_cap(std::size_t at, const ProgramAction& action) {
    if (ends_backward(action.kind)) --in_flight_;
    if (action.kind != Kind::forward || purpose_.forward_only) return;
    ++in_flight_;
    if (purpose_.cap && in_flight_ == *purpose_.cap + 1) refuse(Rule::within_cap, at, in_flight_, *purpose_.cap);
  }

  void check_end() {
    for (const int stage : program_.stages())
      for (int pool = 0; pool < kPools; ++pool)
        for (int index = 0; index < program_.slots(stage, static_cast<Pool>(pool)); ++index) {
          const SlotState& state = *state_of({stage, static_cast<Pool>(pool), index});
          if (state.holds < 0) continue;
          violations_.push_back({.rule = Rule::slot_left_free,
                                 .at = {.rank = program_.rank(), .stage = stage},
                                 .has = state.holds,
                                 .pool = static_cast<Pool>(pool),
                                 .slot = index});
        }
  }

  const Program& program_;
  const StageMap& stage_map_;
  const Purpose& purpose_;
  int in_flight_ = 0;
  Cells<Tally> tallies_;                          // by kind, stage and microbatch, both numbered from 1; 0: all
  std::vector<std::array<int, 2>> last_gradient_; // by stage: last microbatch of I and of W
  std::vector<bool> whole_;                       // by stage: whether it has whole backwards
  std::vector<bool> pending_;                     // by action: a transfer that no action has waited for
  std::size_t count_pending_ = 0;
  std::vector<std::array<SlotRange, kPools>> slots_of_; // by stage
  std::vector<SlotState> slots_;
  StageSlots stage_slots_;
  std::vector<Violation> violations_;
};

} // namespace

std::vector<Violation> verify_rank(const Program& program, const Purpose& purpose) {
  return RankCheck(program, purpose).run();
}

} // namespace triax::schedule
