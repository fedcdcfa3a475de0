// One rank's program: its actions, then its slots.
#include "schedule/verify_rank.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace triax::schedule {

namespace {

/// Where the actions of a kind are: of one microbatch, of a stage, of the rank.
struct Extent {
  std::size_t first = 0, last = 0;
  int count = 0;
};

bool serves_forward(Kind kind) {
  return kind == Kind::forward || kind == Kind::send_f || kind == Kind::recv_f;
}

class RankCheck {
 public:
  RankCheck(const Program& program, const Purpose& purpose)
      : program_(program), stage_map_(program.stage_map()), purpose_(purpose) {}

  std::vector<Support> run() {
    const auto actions = program_.actions();
    for (std::size_t at = 0; at < actions.size(); ++at) note(at, actions[at]);
    if (refusals_.empty()) check_complete();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      check_needs(at, actions[at]);
      check_waits(at, actions[at]);
      check_slots(at, actions[at]);
      check_cap(at, actions[at]);
    }
    check_end();
    return std::move(refusals_);
  }

 private:
  using Key = std::tuple<Kind, int, int>; // -1: any
  using SlotKey = std::tuple<int, Pool, int>;

  template <class... Args>
  void refuse(std::size_t at, std::string_view pattern, const Args&... arguments) {
    refusals_.push_back(Support::no("rank {}, position {}, {}: {}", program_.rank(), at,
                                    program_.label(static_cast<ActionId>(at)), text(pattern, arguments...)));
  }

  void note(std::size_t at, const ProgramAction& action) {
    const bool of_stage = rule(action.kind).scope != Scope::rank;
    if (of_stage && std::ranges::find(program_.stages(), action.stage) == program_.stages().end())
      return refuse(at, "stage {} is not on this rank", action.stage);
    if (of_stage && action.microbatch >= purpose_.shape.microbatches)
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
    if (extend({kind, action.stage, action.microbatch}, at) > 1) return refuse(at, "it is there twice");
    if (kind == Kind::backward_input || kind == Kind::backward_weight) check_ascending(kind, at, action);
    if (action.microbatch >= 0) extend({kind, action.stage, -1}, at);
    if (action.stage >= 0) extend({kind, -1, -1}, at);
  }
  int extend(const Key& key, std::size_t at) {
    Extent& extent = extents_.try_emplace(key, Extent{at, at, 0}).first->second;
    extent.last = at;
    return ++extent.count;
  }

  void check_ascending(Kind kind, std::size_t at, const ProgramAction& action) {
    const auto [entry, first] = last_gradient_.try_emplace({kind, action.stage}, action.microbatch);
    if (!first && entry->second > action.microbatch)
      refuse(at,
             "the {} gradient of microbatch {} came before; gradients of a stage are added in ascending order of "
             "microbatches, so that every schedule gives the same bits",
             kind == Kind::backward_input ? "input" : "weight", entry->second);
    entry->second = action.microbatch;
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
    if (!extents_.contains({kind, stage, microbatch}))
      refusals_.push_back(Support::no("rank {}: {} is missing", program_.rank(), action_text(kind, stage, microbatch)));
  }

  void check_needs(std::size_t at, const ProgramAction& action) {
    for (const Need& need : rule(action.kind).needs) {
      const bool everywhere = need.where == Need::Where::everywhere;
      if (!everywhere && !stage_map_.holds(need.condition, action.stage)) continue;
      const int stage = everywhere ? -1 : stage_of(need, action.stage);
      if (is_transfer(action.kind) && stage != action.stage) continue; // of the other end: verify(programs)
      const auto found = extents_.find({need.kind, stage, everywhere ? -1 : action.microbatch});
      const std::string what = everywhere ? rule(need.kind).name : action_text(need.kind, stage, action.microbatch);
      if (found == extents_.end()) {
        refuse(at, "it needs {}, which is not in the program", what);
      } else if (found->second.last >= at) {
        refuse(at, "it needs {}, which comes later, at position {}", what, found->second.last);
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
      pending_.erase(waited);
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
      held_.erase({action.stage, pool, action.own[static_cast<std::size_t>(pool)]});
    if (is_transfer(action.kind)) pending_.insert(static_cast<ActionId>(at));
    check_joined(at, action);
  }

  /// No transfer may touch the slot still.
  void check_quiet(std::size_t at, const SlotKey& slot) {
    const auto found = touched_.find(slot);
    if (found != touched_.end() && pending_.contains(found->second))
      refuse(at, "{} may still be under way in slot {} of pool {}, and it does not wait for it",
             program_.label(found->second), std::get<2>(slot), name_of(std::get<1>(slot)));
  }
  void touch(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    check_quiet(at, slot);
    if (is_transfer(action.kind)) touched_[slot] = static_cast<ActionId>(at);
  }

  void fill(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    const auto [stage, pool, index] = slot;
    if (index < 0) return refuse(at, "it has no slot of pool {} to fill", name_of(pool));
    if (index >= program_.slots(stage, pool)) refuse(at, "slot {} of pool {} does not exist", index, name_of(pool));
    touch(at, slot, action);
    const auto [entry, added] = held_.try_emplace(slot, action.microbatch);
    if (!added) refuse(at, "slot {} of pool {} still holds microbatch {}", index, name_of(pool), entry->second);
    entry->second = action.microbatch;
  }
  void read(std::size_t at, const SlotKey& slot, const ProgramAction& action) {
    const auto [stage, pool, index] = slot;
    const auto holder = held_.find(slot);
    if (holder == held_.end() || holder->second != action.microbatch)
      return refuse(at, "it reads slot {} of pool {}, which does not hold its microbatch", index, name_of(pool));
    touch(at, slot, action);
  }

  void check_joined(std::size_t at, const ProgramAction& action) {
    if (!rule(action.kind).joins || pending_.empty()) return;
    refuse(at, "it does not wait for {}, which was posted before", program_.label(*pending_.begin()));
  }

  void check_cap(std::size_t at, const ProgramAction& action) {
    if (action.kind == Kind::backward || action.kind == Kind::backward_weight) --kept_;
    if (action.kind != Kind::forward || purpose_.forward_only) return;
    ++kept_;
    if (purpose_.cap && kept_ == *purpose_.cap + 1)
      refuse(at, "it is one more than the {} microbatches that a rank may keep, counted per stage", *purpose_.cap);
  }

  void check_end() {
    for (const auto& [slot, microbatch] : held_)
      refusals_.push_back(Support::no("rank {}, stage {}: pool {}, slot {} still holds microbatch {} at the end",
                                      program_.rank(), std::get<0>(slot), name_of(std::get<1>(slot)), std::get<2>(slot),
                                      microbatch));
  }

  const Program& program_;
  const StageMap& stage_map_;
  const Purpose& purpose_;
  int kept_ = 0;
  std::map<Key, Extent> extents_;
  std::map<std::pair<Kind, int>, int> last_gradient_;
  std::map<SlotKey, int> held_;
  std::map<SlotKey, ActionId> touched_; // by the transfer that was there last
  std::set<ActionId> pending_;          // transfers not waited for
  std::vector<Support> refusals_;
};

} // namespace

std::vector<Support> verify_rank(const Program& program, const Purpose& purpose) {
  return RankCheck(program, purpose).run();
}

} // namespace triax::schedule
