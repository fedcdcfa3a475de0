// SPDX-License-Identifier: Apache-2.0
#include "cost/exchange_programs.hpp"

#include <span>
#include <utility>

namespace triax::cost {

namespace {

using schedule::Kind;
using schedule::Program;
using schedule::ProgramAction;
using schedule::StageMap;

class RankRow {
 public:
  RankRow(const StageMap& stage_map, std::span<const Action> row, schedule::Boundaries boundaries)
      : stage_map_(stage_map), row_(row), scattered_(boundaries == schedule::Boundaries::scattered) {}

  std::vector<ProgramAction> run(PassGroups groups) {
    std::span<const Action> before, left = row_;
    while (!left.empty()) {
      const std::span<const Action> group = left.first(groups == PassGroups::pairs && begins_pair(left) ? 2 : 1);
      for (const Action& action : before) send(action);
      for (const Action& action : group) receive(action);
      for (const Action& action : group) compute(action);
      before = group;
      left = left.subspan(group.size());
    }
    for (const Action& action : before) send(action);
    return std::move(out_);
  }

 private:
  static bool begins_pair(std::span<const Action> left) {
    return left.size() > 1 && left[0].kind == ComputeKind::forward && left[1].kind != ComputeKind::forward;
  }
  bool has(const Action& action, schedule::Facts facts) const { return stage_map_.has(action.stage, facts); }
  void add(Kind kind, const Action& action, int peer_stage = -1) {
    ProgramAction& out = out_.emplace_back();
    out.kind = kind;
    out.stage = action.stage;
    out.microbatch = action.microbatch;
    if (peer_stage >= 0) out.peer = stage_map_.rank_of(peer_stage);
  }

  void send(const Action& action) {
    if (action.kind == ComputeKind::forward && has(action, schedule::kAfterElsewhere))
      add(Kind::send_f, action, action.stage + 1);
    if (schedule::begins_backward(schedule::kind_of(action.kind)) && has(action, schedule::kBeforeElsewhere))
      add(Kind::send_b, action, action.stage - 1);
  }
  void receive(const Action& action) {
    if (action.kind == ComputeKind::forward && has(action, schedule::kBeforeElsewhere))
      add(Kind::recv_f, action, action.stage - 1);
    if (schedule::begins_backward(schedule::kind_of(action.kind)) && has(action, schedule::kAfterElsewhere))
      add(Kind::recv_b, action, action.stage + 1);
  }
  void compute(const Action& action) {
    if (scattered_ && action.kind == ComputeKind::forward && has(action, schedule::kBeforeElsewhere))
      add(Kind::gather_f, action);
    if (scattered_ && schedule::begins_backward(schedule::kind_of(action.kind)) &&
        has(action, schedule::kAfterElsewhere))
      add(Kind::gather_b, action);
    add(schedule::kind_of(action.kind), action);
  }

  const StageMap& stage_map_;
  const std::span<const Action> row_;
  const bool scattered_;
  std::vector<ProgramAction> out_;
};

} // namespace

std::vector<Program> exchange_programs(const Schedule& schedule, schedule::Boundaries boundaries, PassGroups groups) {
  const StageMap stage_map(schedule.stage_rank().at(0));
  std::vector<Program> out;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<schedule::Slots> no_slots(stage_map.stages_of(rank).size(), schedule::kNoSlots);
    out.emplace_back(stage_map, rank, std::move(no_slots),
                     RankRow(stage_map, schedule.row(rank), boundaries).run(groups), Program::Posts::sets, boundaries);
  }
  return out;
}

} // namespace triax::cost
