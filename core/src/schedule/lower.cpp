// SPDX-License-Identifier: Apache-2.0
// Computes times for the rows, sorts the transfers, and merges each rank's transfers into its row.
#include "schedule/lower.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/rank_lowering.hpp"
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
  Lowering(Rows rows, const Schedule& schedule, const PipelineShape& shape, bool forward_only, Boundaries boundaries,
           Sharding sharding, int prefetch, const std::vector<bool>& recomputes)
      : shape_(shape),
        stage_map_(schedule.stage_rank().at(0)),
        rows_(std::move(rows)),
        ends_(end_times(rows_, stage_map_)),
        forward_only_(forward_only),
        boundaries_(boundaries),
        sharding_(sharding),
        prefetch_(prefetch),
        recomputes_(recomputes) {
    TRIAX_REQUIRE(recomputes_.empty() || recomputes_.size() == static_cast<std::size_t>(stage_map_.stages()),
                  "{} stages, recomputation of {}", stage_map_.stages(), recomputes_.size());
    of_rank_.resize(rows_.size());
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (std::size_t at = 0; at < rows_[rank].size(); ++at) note_transfers(rows_[rank][at], ends_[rank][at]);
    for (std::vector<Transfer>& transfers : of_rank_) std::sort(transfers.begin(), transfers.end());
  }

  std::vector<Program> run() const {
    std::vector<Program> programs;
    programs.reserve(rows_.size());
    for (int rank = 0; rank < shape_.pipeline; ++rank) {
      RankLowering program(stage_map_, rank, forward_only_, boundaries_, sharding_);
      const auto at = static_cast<std::size_t>(rank);
      program.reserve(rows_[at].size() + 2 * of_rank_[at].size());
      lower_rank(rank, program);
      programs.push_back(program.finish());
    }
    return programs;
  }

  std::vector<RankSlots> count() const {
    std::vector<RankSlots> out;
    for (int rank = 0; rank < shape_.pipeline; ++rank) {
      RankLowering program(stage_map_, rank, forward_only_, boundaries_, sharding_);
      program.count_only();
      lower_rank(rank, program);
      out.push_back(program.slots());
    }
    return out;
  }

 private:
  void note_transfers(const Action& action, std::int64_t end) {
    const int stage = action.stage, microbatch = action.microbatch;
    const Kind kind = kind_of(action.kind);
    if (kind == Kind::forward && stage_map_.has(stage, kAfterElsewhere))
      note({end, stage, stage + 1, microbatch, Kind::send_f});
    const bool ends_input = kind == Kind::backward || kind == Kind::backward_input;
    if (ends_input && stage_map_.has(stage, kBeforeElsewhere)) note({end, stage, stage - 1, microbatch, Kind::send_b});
  }
  void note(const Transfer& transfer) {
    for (const int stage : {transfer.from_stage, transfer.to_stage})
      of_rank_[static_cast<std::size_t>(stage_map_.rank_of(stage))].push_back(transfer);
  }

  void lower_rank(int rank, RankLowering& program) const {
    const std::vector<Action>& row = rows_[static_cast<std::size_t>(rank)];
    const std::vector<std::int64_t>& ends = ends_[static_cast<std::size_t>(rank)];
    const std::vector<Transfer>& transfers = of_rank_[static_cast<std::size_t>(rank)];
    auto transfer = transfers.begin();
    const auto post_until = [&](std::int64_t time) { // transfers that are produced before `time`
      for (; transfer != transfers.end() && transfer->time < time; ++transfer) post(program, *transfer, rank);
    };
    std::map<int, int> backwards; // by stage
    WeightUses weights(row, prefetch_);
    const auto keep_weights = [&](Kind kind, const std::vector<int>& stages) {
      if (sharding_ != Sharding::parameters) return;
      for (const int stage : stages) program.add_ending(kind, stage);
    };
    for (std::size_t at = 0; at < row.size(); ++at) {
      const Action& action = row[at];
      post_until(ends[at]);
      keep_weights(Kind::unshard, weights.gathered_before(at));
      recompute(program, action);
      gather(program, action);
      program.add(kind_of(action.kind), action.stage, action.microbatch);
      keep_weights(Kind::reshard, weights.dropped_after(at));
      if (!ends_backward(kind_of(action.kind)) || ++backwards[action.stage] < shape_.microbatches) continue;
      post_until(ends[at] + 1); // sends its own gradient first, because another rank waits for it
      program.add_ending(Kind::reduce_grad, action.stage);
    }
    for (; transfer != transfers.end(); ++transfer) post(program, *transfer, rank);
    if (!forward_only_) {
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

  /// Adds the gathers for the scattered tensors that the action reads.
  void gather(RankLowering& program, const Action& action) const {
    for (const Need& need : rule(kind_of(action.kind)).needs)
      if (gathers(need.kind) && need.condition.holds(program.facts(action.stage)))
        program.add(need.kind, action.stage, action.microbatch);
  }

  void post(RankLowering& program, const Transfer& transfer, int rank) const {
    const int from = stage_map_.rank_of(transfer.from_stage), to = stage_map_.rank_of(transfer.to_stage);
    if (from == rank) program.add(transfer.send, transfer.from_stage, transfer.microbatch, to);
    if (to == rank) program.add(transfer.receive(), transfer.to_stage, transfer.microbatch, from);
  }

  PipelineShape shape_;
  StageMap stage_map_;
  Rows rows_;
  std::vector<std::vector<std::int64_t>> ends_;
  bool forward_only_;
  Boundaries boundaries_;
  Sharding sharding_;
  int prefetch_;
  std::vector<bool> recomputes_;               // by stage; empty: none
  std::vector<std::vector<Transfer>> of_rank_; // sends and receives of each rank, in the global order
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

std::vector<Program> lower(const Schedule& schedule, const PipelineShape& shape, Boundaries boundaries,
                           Sharding sharding, int prefetch, const std::vector<bool>& recomputes) {
  return Lowering(rows_of(schedule, false), schedule, shape, false, boundaries, sharding, prefetch, recomputes).run();
}

std::vector<Program> lower_forward_only(const Schedule& schedule, const PipelineShape& shape, Boundaries boundaries,
                                        Sharding sharding, int prefetch) {
  return Lowering(rows_of(schedule, true), schedule, shape, true, boundaries, sharding, prefetch, {}).run();
}

std::vector<RankSlots> count_slots(const Schedule& schedule, const PipelineShape& shape, bool forward_only,
                                   Boundaries boundaries, Sharding sharding, int prefetch) {
  return Lowering(rows_of(schedule, forward_only), schedule, shape, forward_only, boundaries, sharding, prefetch, {})
      .count();
}

} // namespace triax::schedule
