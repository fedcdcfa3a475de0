// SPDX-License-Identifier: Apache-2.0
#include "schedule/stage_slots.hpp"

namespace triax::schedule {

StageSlots::StageSlots(const Program& program)
    : program_(program),
      accumulators_{Pool::accumulator, std::vector<SlotState>(static_cast<std::size_t>(program.accumulators())),
                    std::vector<int>(program.stages().size(), -1)},
      weights_{Pool::weights, std::vector<SlotState>(static_cast<std::size_t>(program.weight_slots())),
               std::vector<int>(program.stages().size(), -1)},
      pending_(program.actions().size()) {}

ActionRef StageSlots::ref_of(std::size_t at) const {
  const ProgramAction& action = program_.actions()[at];
  return {program_.rank(), static_cast<ActionId>(at), action.kind, action.stage, action.microbatch};
}

Violation StageSlots::violation(Rule rule, std::size_t at, Pool pool, int slot, int has) const {
  return {.rule = rule, .at = ref_of(at), .has = has, .pool = pool, .slot = slot};
}

void StageSlots::check(std::size_t at, std::vector<Violation>& violations) {
  const ProgramAction& action = program_.actions()[at];
  if (scatters_gradients(program_.sharding())) check_accumulator(at, action, violations);
  if (program_.sharding() == Sharding::parameters) check_weights(at, action, violations);
  pending_[at] = is_transfer(action.kind);
}

void StageSlots::touch(StagePool& pool, int slot, std::size_t at, const ProgramAction& action,
                       std::vector<Violation>& violations) {
  SlotState& state = pool.slots[static_cast<std::size_t>(slot)];
  if (state.touched != kNoAction && pending_[state.touched]) {
    Violation& added = violations.emplace_back(violation(Rule::slot_settled, at, pool.pool, slot));
    added.others = {ref_of(state.touched)};
  }
  if (is_transfer(action.kind)) state.touched = static_cast<ActionId>(at);
}

void StageSlots::take(StagePool& pool, int slot, std::size_t at, const ProgramAction& action,
                      std::vector<Violation>& violations) {
  if (slot < 0) {
    violations.push_back(violation(Rule::slot_named, at, pool.pool, slot));
    return;
  }
  SlotState& state = pool.slots[static_cast<std::size_t>(slot)];
  touch(pool, slot, at, action, violations);
  if (state.holds >= 0) violations.push_back(violation(Rule::slot_free, at, pool.pool, slot, state.holds));
  state.holds = action.stage;
  slot_of(pool, action.stage) = slot;
}

void StageSlots::release(StagePool& pool, int stage) const {
  int& slot = slot_of(pool, stage);
  pool.slots[static_cast<std::size_t>(slot)].holds = -1;
  slot = -1;
}

/// The first backward of a stage takes a slot that no other stage has, and REDUCE_GRAD frees it.
void StageSlots::check_accumulator(std::size_t at, const ProgramAction& action, std::vector<Violation>& violations) {
  const bool reduces = action.kind == Kind::reduce_grad;
  if (!reduces && !accumulates(action.kind)) return;
  const int held = slot_of(accumulators_, action.stage);
  if (held < 0) {
    if (!reduces) take(accumulators_, action.accumulator, at, action, violations); // else Rule::before refuses it
  } else if (!reduces && action.accumulator == held) {                             // would fill the sum with zeros
    violations.push_back(violation(Rule::slot_free, at, Pool::accumulator, held, action.stage));
  } else if (action.accumulator != held && (reduces || action.accumulator >= 0)) {
    violations.push_back(violation(Rule::slot_filled, at, Pool::accumulator, action.accumulator));
  } else if (reduces) {
    touch(accumulators_, held, at, action, violations);
    release(accumulators_, action.stage);
  }
}

/// UNSHARD takes a slot, passes read it, and RESHARD frees it.
void StageSlots::check_weights(std::size_t at, const ProgramAction& action, std::vector<Violation>& violations) {
  const int held = action.stage < 0 ? -1 : slot_of(weights_, action.stage);
  if (action.kind == Kind::unshard) {
    if (held < 0) return take(weights_, action.weights, at, action, violations);
    violations.push_back(violation(Rule::slot_free, at, Pool::weights, held, action.stage));
  } else if (action.kind == Kind::reshard || reads_weights(action.kind)) {
    if (held < 0 || action.weights != held) {
      violations.push_back(violation(Rule::slot_filled, at, Pool::weights, action.weights));
      return;
    }
    touch(weights_, held, at, action, violations);
    if (action.kind == Kind::reshard) release(weights_, action.stage);
  }
}

void StageSlots::check_end(std::vector<Violation>& violations) const {
  for (std::size_t slot = 0; slot < weights_.slots.size(); ++slot) {
    const int stage = weights_.slots[slot].holds;
    if (stage < 0) continue;
    violations.push_back({.rule = Rule::slot_left_free,
                          .at = {.rank = program_.rank(), .stage = stage},
                          .has = stage,
                          .pool = Pool::weights,
                          .slot = static_cast<int>(slot)});
  }
}

} // namespace triax::schedule
