// SPDX-License-Identifier: Apache-2.0
// The slots that an action reads and fills, written by hand and independent of the rule table.
//
// Threads: pure functions. Ownership: values. Blocking: never.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program.hpp"

namespace triax::test {

class SlotsByHand {
 public:
  using Kind = schedule::Kind;
  using Pool = schedule::Pool;

  explicit SlotsByHand(std::span<const schedule::Program> programs) : stages_(programs[0].stage_map()) {
    for (const schedule::Program& program : programs)
      for (const schedule::ProgramAction& action : program.actions()) {
        if (action.kind == Kind::recompute) recomputed_.insert(action.stage);
        if (action.kind == Kind::backward_input) split_.emplace(action.stage, action.microbatch);
      }
  }

  /// Whether the stage has an R.
  bool recomputes(int stage) const { return recomputed_.contains(stage); }

  /// Pools of the same stage.
  std::vector<Pool> reads(const schedule::ProgramAction& action) const {
    const bool first = action.stage == 0, last = action.stage + 1 == stages_.stages();
    std::vector<Pool> out;
    switch (action.kind) {
      case Kind::forward:
        if (!first) out = {Pool::input_f, Pool::input_i, Pool::input_w};
        break;
      case Kind::backward:
      case Kind::backward_input:
        out = {Pool::stash_i, Pool::stash_w};
        if (!first) out.insert(out.end(), {Pool::input_i, Pool::input_w});
        if (!last) out.push_back(Pool::gradient);
        if (action.kind == Kind::backward_input && recomputes(action.stage)) out.push_back(Pool::stash_iw);
        break;
      case Kind::recompute:
        out = {Pool::stash_i, Pool::stash_w};
        if (!first) out.insert(out.end(), {Pool::input_i, Pool::input_w});
        break;
      case Kind::backward_weight:
        out = {Pool::stash_w, Pool::stash_iw};
        if (!first) out.push_back(Pool::input_w);
        break;
      case Kind::gather_f:
        out = {Pool::input_f, Pool::input_i, Pool::input_w};
        break;
      case Kind::gather_b:
        out = {Pool::gradient};
        break;
      case Kind::send_f:
        out = {Pool::output};
        break;
      case Kind::send_b:
        out = {Pool::input_gradient};
        break;
      default:
        break;
    }
    return out;
  }
  /// Pairs of stage and pool.
  std::vector<std::pair<int, Pool>> fills(const schedule::ProgramAction& action) const {
    const int stage = action.stage;
    std::vector<std::pair<int, Pool>> out;
    const auto arrives_at = [&out](int there) {
      for (const Pool pool : {Pool::input_f, Pool::input_i, Pool::input_w}) out.emplace_back(there, pool);
    };
    switch (action.kind) {
      case Kind::forward:
        out = {{stage, Pool::stash_i}, {stage, Pool::stash_w}};
        if (is_here(stage, stage + 1)) arrives_at(stage + 1);
        if (is_elsewhere(stage, stage + 1)) out.emplace_back(stage, Pool::output);
        break;
      case Kind::backward:
      case Kind::backward_input:
        if (action.kind == Kind::backward_input && !recomputes(stage)) out.emplace_back(stage, Pool::stash_iw);
        if (is_here(stage, stage - 1)) out.emplace_back(stage - 1, Pool::gradient);
        if (is_elsewhere(stage, stage - 1)) out.emplace_back(stage, Pool::input_gradient);
        break;
      case Kind::recompute:
        if (split_.contains({stage, action.microbatch})) out.emplace_back(stage, Pool::stash_iw);
        break;
      case Kind::recv_f:
        arrives_at(stage);
        break;
      case Kind::recv_b:
        out.emplace_back(stage, Pool::gradient);
        break;
      default:
        break;
    }
    return out;
  }

  /// All passes use the memory into which R writes. In a stage with an R, B and I do not recompute.
  std::string recomputation_fault(const schedule::Program& program) const {
    const schedule::ProgramAction* last = nullptr; // R, while no pass has followed
    for (ActionId id = 0; id < program.actions().size(); ++id) {
      const schedule::ProgramAction& action = program.actions()[id];
      if (!is_pass(action.kind)) continue;
      const bool begins = action.kind == Kind::backward || action.kind == Kind::backward_input;
      const bool follows = last && last->stage == action.stage && last->microbatch == action.microbatch;
      if (last && !(begins && follows)) return std::string(program.label(id)) + " overwrites what R has computed";
      if (begins && recomputes(action.stage) && !follows)
        return std::string(program.label(id)) + " lacks what R computes";
      last = action.kind == Kind::recompute ? &action : nullptr;
    }
    return last ? "nothing follows R" : "";
  }

 private:
  static bool is_pass(Kind kind) {
    return kind == Kind::forward || kind == Kind::backward || kind == Kind::backward_input ||
           kind == Kind::backward_weight || kind == Kind::recompute;
  }
  bool is_elsewhere(int stage, int neighbour) const {
    return neighbour >= 0 && neighbour < stages_.stages() && stages_.rank_of(stage) != stages_.rank_of(neighbour);
  }
  bool is_here(int stage, int neighbour) const {
    return neighbour >= 0 && neighbour < stages_.stages() && stages_.rank_of(stage) == stages_.rank_of(neighbour);
  }

  schedule::StageMap stages_;
  std::set<int> recomputed_;            // stages
  std::set<std::pair<int, int>> split_; // stages and microbatches with an I
};

} // namespace triax::test
