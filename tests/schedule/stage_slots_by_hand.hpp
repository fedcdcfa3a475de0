// SPDX-License-Identifier: Apache-2.0
// The slots of whole stages, accumulators and gathered weights, followed through a program. Written by hand and
// independent of lowering and verifier.
//
// Threads: one. Ownership: values. Blocking: never.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "schedule/program.hpp"

namespace triax::test {

class StageSlotsByHand {
 public:
  using Mask = std::uint64_t; // a set of transfers

  explicit StageSlotsByHand(schedule::Sharding sharding)
      : shares_accumulators_(sharding == schedule::Sharding::gradients || sharding == schedule::Sharding::parameters),
        shares_weights_(sharding == schedule::Sharding::parameters) {}

  struct Followed {
    const char* fault = nullptr;
    Mask touched = 0; // transfers that have used the slot
  };
  /// The next action of the program; `own`: the action, if it is a transfer.
  Followed follow(const schedule::ProgramAction& action, Mask own) {
    const Followed adds = shares_accumulators_ ? follow_accumulator(action, own) : Followed{};
    const Followed reads = shares_weights_ ? follow_weights(action, own) : Followed{};
    return {adds.fault ? adds.fault : reads.fault, adds.touched | reads.touched};
  }
  bool drops_all_weights() const {
    return std::ranges::all_of(weights_, [](const auto& slot) { return slot.second.stage == kNone; });
  }

 private:
  using Kind = schedule::Kind;
  static constexpr int kNone = -1;
  struct Slot {
    int stage = kNone;
    Mask touched = 0;
  };
  using Slots = std::map<int, Slot>; // by number

  static int number_of(const Slots& slots, int stage) {
    const auto found = std::ranges::find_if(slots, [stage](const auto& slot) { return slot.second.stage == stage; });
    return found == slots.end() ? kNone : found->first;
  }
  static Followed take(Slots& slots, int number, const schedule::ProgramAction& action) {
    if (number < 0) return {.fault = "has no slot for its stage"};
    Slot& slot = slots[number];
    if (slot.stage != kNone) return {.fault = "takes what a stage uses"};
    slot.stage = action.stage;
    return {.touched = slot.touched};
  }

  /// Where an action names an accumulator, the executor fills it with zeros. The others add to that of their stage.
  Followed follow_accumulator(const schedule::ProgramAction& action, Mask own) {
    const bool adds =
        action.kind == Kind::backward || action.kind == Kind::backward_input || action.kind == Kind::backward_weight;
    const int held = number_of(accumulators_, action.stage);
    if (adds && held == kNone) return take(accumulators_, action.accumulator, action);
    if (adds) return {.fault = action.accumulator >= 0 ? "fills a sum with zeros" : nullptr};
    if (action.kind != Kind::reduce_grad) return {};
    if (held == kNone || held != action.accumulator) return {.fault = "reduces what its stage has not added to"};
    accumulators_[held] = {kNone, accumulators_[held].touched | own};
    return {};
  }

  Followed follow_weights(const schedule::ProgramAction& action, Mask own) {
    const bool reads = action.kind == Kind::forward || action.kind == Kind::backward ||
                       action.kind == Kind::backward_input || action.kind == Kind::recompute ||
                       action.kind == Kind::reshard;
    const int held = number_of(weights_, action.stage);
    if (action.kind == Kind::unshard) {
      if (held != kNone) return {.fault = "gathers weights that are there"};
      const Followed taken = take(weights_, action.weights, action);
      if (!taken.fault) weights_[action.weights].touched |= own;
      return taken;
    }
    if (!reads) return {};
    if (held == kNone || held != action.weights) return {.fault = "reads weights that are not there"};
    if (action.kind == Kind::reshard) weights_[held].stage = kNone;
    return {.touched = weights_[held].touched};
  }

  bool shares_accumulators_, shares_weights_;
  Slots accumulators_, weights_;
};

} // namespace triax::test
