// SPDX-License-Identifier: Apache-2.0
// Computes times for the rows, orders the transfers, and merges each rank's transfers into its row.
#include "schedule/lower.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "schedule/rank_lowering.hpp"
#include "schedule/slot_count.hpp"
#include "schedule/timing.hpp"
#include "schedule/weight_uses.hpp"
#include "triax/error.hpp"

namespace triax::schedule {

namespace {

using Rows = std::vector<std::vector<Action>>;

/// A tensor that a stage produces for a neighbour on another rank.
struct Transfer {
  std::int64_t time = 0; // end of its producer
  int from_stage = 0, to_stage = 0, microbatch = 0;
  Kind send = Kind::send_f;

  bool operator<(const Transfer& other) const {
    if (time != other.time) return time < other.time; // decides nearly always
    return std::tie(microbatch, from_stage, to_stage) < std::tie(other.microbatch, other.from_stage, other.to_stage);
  }
  Kind receive() const { return send == Kind::send_f ? Kind::recv_f : Kind::recv_b; }
};

class Lowering {
 public:
  Lowering(const TimedRows& timed, Boundaries boundaries, Sharding sharding, int prefetch,
           std::vector<bool> recomputes = {})
      : timed_(timed),
        stage_map_(timed.stage_map),
        boundaries_(boundaries),
        sharding_(sharding),
        prefetch_(prefetch),
        recomputes_(std::move(recomputes)) {
    TRIAX_REQUIRE(recomputes_.empty() || recomputes_.size() == static_cast<std::size_t>(stage_map_.stages()),
                  "{} stages, recomputation of {}", stage_map_.stages(), recomputes_.size());
  }

  std::vector<Program> programs() const {
    std::vector<Program> out;
    out.reserve(timed_.rows.size());
    for (int rank = 0; rank < timed_.shape.pipeline; ++rank) out.push_back(program(rank));
    return out;
  }

  Program program(int rank) const {
    RankLowering out(stage_map_, rank, timed_.forward_only, boundaries_, sharding_);
    const std::vector<Transfer> transfers = transfers_of(rank);
    out.reserve(timed_.rows[static_cast<std::size_t>(rank)].size() + transfers.size());
    lower_rank(rank, transfers, out);
    return out.finish();
  }

  RankSlots count(int rank) const {
    SlotCount out(stage_map_, rank, timed_.forward_only, boundaries_, sharding_);
    lower_rank(rank, transfers_of(rank), out);
    return out.slots();
  }

 private:
  /// The transfer of what a pass writes for another rank; empty: there is none.
  std::optional<Transfer> transfer_of(const Action& action, std::int64_t end) const {
    const int stage = action.stage, microbatch = action.microbatch;
    const Kind kind = kind_of(action.kind);
    if (kind == Kind::forward && stage_map_.has(stage, kAfterElsewhere))
      return Transfer{end, stage, stage + 1, microbatch, Kind::send_f};
    if (begins_backward(kind) && stage_map_.has(stage, kBeforeElsewhere))
      return Transfer{end, stage, stage - 1, microbatch, Kind::send_b};
    return std::nullopt;
  }

  /// Sends and receives of a rank, in the global order. Those of one producer are in its row in this order.
  std::vector<Transfer> transfers_of(int rank) const {
    std::set<int> producers = {rank};
    for (const int stage : stage_map_.stages_of(rank)) {
      if (stage_map_.has(stage, kBeforeElsewhere)) producers.insert(stage_map_.rank_of(stage - 1));
      if (stage_map_.has(stage, kAfterElsewhere)) producers.insert(stage_map_.rank_of(stage + 1));
    }
    std::vector<Transfer> out;
    for (const int producer : producers) {
      const auto at = static_cast<std::size_t>(producer);
      const auto merged = static_cast<std::ptrdiff_t>(out.size());
      for (std::size_t pass = 0; pass < timed_.rows[at].size(); ++pass) {
        const std::optional<Transfer> transfer = transfer_of(timed_.rows[at][pass], timed_.ends[at][pass]);
        if (transfer && (producer == rank || stage_map_.rank_of(transfer->to_stage) == rank)) out.push_back(*transfer);
      }
      std::inplace_merge(out.begin(), out.begin() + merged, out.end());
    }
    return out;
  }

  /// `program`: a RankLowering or a SlotCount.
  template <class Program>
  void lower_rank(int rank, const std::vector<Transfer>& transfers, Program& program) const {
    const std::vector<Action>& row = timed_.rows[static_cast<std::size_t>(rank)];
    const std::vector<std::int64_t>& ends = timed_.ends[static_cast<std::size_t>(rank)];
    auto transfer = transfers.begin();
    const auto post_until = [&](std::int64_t time) { // transfers that are produced before `time`
      for (; transfer != transfers.end() && transfer->time < time; ++transfer) post(program, *transfer, rank);
    };
    std::vector<int> backwards(static_cast<std::size_t>(stage_map_.stages())); // by stage
    std::optional<WeightUses> weights;
    if (sharding_ == Sharding::parameters) weights.emplace(row, prefetch_);
    const auto add_all = [&](Kind kind, const std::vector<int>& stages) {
      for (const int stage : stages) program.add_ending(kind, stage);
    };
    for (std::size_t at = 0; at < row.size(); ++at) {
      const Action& action = row[at];
      post_until(ends[at]);
      if (weights) add_all(Kind::unshard, weights->gathered_before(at));
      recompute(program, action);
      gather(program, action);
      program.add(kind_of(action.kind), action.stage, action.microbatch);
      if (weights) add_all(Kind::reshard, weights->dropped_after(at));
      if (!ends_backward(kind_of(action.kind)) ||
          ++backwards[static_cast<std::size_t>(action.stage)] < timed_.shape.microbatches)
        continue;
      post_until(ends[at] + 1); // sends its own gradient first, because another rank waits for it
      program.add_ending(Kind::reduce_grad, action.stage);
    }
    for (; transfer != transfers.end(); ++transfer) post(program, *transfer, rank);
    if (!timed_.forward_only) {
      for (const Kind kind : {Kind::reduce_tied, Kind::norm}) program.add_ending(kind);
      for (const int stage : stage_map_.stages_of(rank)) {
        program.add_ending(Kind::opt_step, stage);
        if (gathers_updates(sharding_)) program.add_ending(Kind::gather_param, stage);
      }
    }
  }

  void recompute(RankLowering& program, const Action& action) const {
    if (recomputes_.empty() || !recomputes_[static_cast<std::size_t>(action.stage)]) return;
    if (begins_backward(kind_of(action.kind)))
      program.add_recompute(action.stage, action.microbatch, action.kind == ComputeKind::backward_input);
  }
  /// R and gathers take no slot.
  void recompute(SlotCount&, const Action&) const {}
  void gather(SlotCount&, const Action&) const {}

  /// Adds the gathers for the scattered tensors that the action reads.
  void gather(RankLowering& program, const Action& action) const {
    if (boundaries_ == Boundaries::whole) return;
    for (const Need& need : rule(kind_of(action.kind)).needs)
      if (gathers(need.kind) && need.condition.holds(program.facts(action.stage)))
        program.add(need.kind, action.stage, action.microbatch);
  }

  template <class Program>
  void post(Program& program, const Transfer& transfer, int rank) const {
    const int from = stage_map_.rank_of(transfer.from_stage), to = stage_map_.rank_of(transfer.to_stage);
    if (from == rank) program.add(transfer.send, transfer.from_stage, transfer.microbatch, to);
    if (to == rank) program.add(transfer.receive(), transfer.to_stage, transfer.microbatch, from);
  }

  const TimedRows& timed_;
  const StageMap& stage_map_;
  Boundaries boundaries_;
  Sharding sharding_;
  int prefetch_;
  std::vector<bool> recomputes_; // by stage; empty: none
};

Rows rows_of(const Schedule& schedule, bool forward_only) {
  Rows rows;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Action>& row = rows.emplace_back(schedule.row(rank));
    if (forward_only) std::erase_if(row, [](const Action& action) { return action.kind != ComputeKind::forward; });
  }
  return rows;
}

} // namespace

TimedRows::TimedRows(const Schedule& schedule, const PipelineShape& of, bool has_only_forwards)
    : shape(of),
      forward_only(has_only_forwards),
      stage_map(schedule.stage_rank().at(0)),
      rows(rows_of(schedule, forward_only)),
      ends(end_times(rows, stage_map)) {}

std::vector<Program> lower(const Schedule& schedule, const PipelineShape& shape, Boundaries boundaries,
                           Sharding sharding, int prefetch, const std::vector<bool>& recomputes) {
  const TimedRows rows(schedule, shape, false);
  return Lowering(rows, boundaries, sharding, prefetch, recomputes).programs();
}

std::vector<Program> lower_forward_only(const Schedule& schedule, const PipelineShape& shape, Boundaries boundaries,
                                        Sharding sharding, int prefetch) {
  const TimedRows rows(schedule, shape, true);
  return Lowering(rows, boundaries, sharding, prefetch).programs();
}

Program lower_rank(const TimedRows& rows, int rank, Boundaries boundaries, Sharding sharding, int prefetch) {
  return Lowering(rows, boundaries, sharding, prefetch).program(rank);
}

RankSlots count_slots(const TimedRows& rows, int rank, Boundaries boundaries, Sharding sharding, int prefetch) {
  return Lowering(rows, boundaries, sharding, prefetch).count(rank);
}

} // namespace triax::schedule
