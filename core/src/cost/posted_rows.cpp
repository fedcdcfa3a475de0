// SPDX-License-Identifier: Apache-2.0
#include "cost/posted_rows.hpp"

#include <algorithm>
#include <cstddef>

#include "schedule/rules.hpp"
#include "triax/error.hpp"

namespace triax::cost {

namespace {

using schedule::begins_backward;
using schedule::ends_backward;
using schedule::kind_of;

/// Puts the passes of all ranks into one order: in turns, one pass of each rank that has its inputs, so that
/// neighbours in the order seldom wait for each other.
class PassOrder {
 public:
  PassOrder(const Schedule& schedule, PostedRows& out)
      : schedule_(schedule),
        out_(out),
        microbatches_(static_cast<std::size_t>(out.shape.microbatches)),
        of_forwards_(static_cast<std::size_t>(out.shape.stages()) * microbatches_, -1),
        of_backwards_(of_forwards_.size(), -1),
        at_(static_cast<std::size_t>(schedule.ranks()), 0),
        backwards_left_(static_cast<std::size_t>(out.shape.stages()), out.shape.microbatches) {}

  void run() {
    for (bool advances = true; advances;) {
      advances = false;
      for (int rank = 0; rank < schedule_.ranks(); ++rank) advances |= add_next(rank);
    }
    for (int rank = 0; rank < schedule_.ranks(); ++rank)
      if (at_[static_cast<std::size_t>(rank)] < schedule_.row(rank).size())
        throw Error(text("rank {} cannot complete its row", rank));
  }

 private:
  /// False: the rank has no pass left, or the next one waits.
  bool add_next(int rank) {
    std::size_t& at = at_[static_cast<std::size_t>(rank)];
    if (at == schedule_.row(rank).size()) return false;
    const Action& action = schedule_.row(rank)[at];
    const std::int32_t* const reads = read_by(action);
    if (reads && *reads < 0) return false;
    ++at;
    PostedRows::Pass& pass = out_.passes.emplace_back();
    pass.rank = rank;
    pass.stage = action.stage;
    pass.kind = action.kind;
    if (reads) {
      pass.reads = *reads;
      free_.push_back(*reads);
    }
    write(action, pass);
    pass.ends_stage =
        ends_backward(kind_of(action.kind)) && --backwards_left_[static_cast<std::size_t>(action.stage)] == 0;
    if (pass.ends_stage) out_.ended_stages.push_back(action.stage);
    return true;
  }

  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  /// The slot of what the pass reads of a neighbour stage, -1 if it is not written; null: it reads nothing.
  const std::int32_t* read_by(const Action& action) const {
    if (action.kind == ComputeKind::forward)
      return action.stage == 0 ? nullptr : &of_forwards_[index(action.stage, action.microbatch)];
    const bool reads = begins_backward(kind_of(action.kind)) && action.stage + 1 < out_.shape.stages();
    return reads ? &of_backwards_[index(action.stage, action.microbatch)] : nullptr;
  }

  void write(const Action& action, PostedRows::Pass& pass) {
    const bool is_forward = action.kind == ComputeKind::forward;
    const int to = action.stage + (is_forward ? 1 : -1);
    if ((!is_forward && !begins_backward(kind_of(action.kind))) || to < 0 || to == out_.shape.stages()) return;
    if (free_.empty()) free_.push_back(out_.slots++);
    pass.writes = free_.back();
    free_.pop_back();
    (is_forward ? of_forwards_ : of_backwards_)[index(to, action.microbatch)] = pass.writes;
    if (out_.stage_rank[static_cast<std::size_t>(to)] != pass.rank) pass.link = std::min(action.stage, to);
  }

  const Schedule& schedule_;
  PostedRows& out_;
  const std::size_t microbatches_;
  std::vector<std::int32_t> of_forwards_, of_backwards_; // slots, by stage that reads, and microbatch
  std::vector<std::size_t> at_;                          // by rank: its next pass
  std::vector<int> backwards_left_;                      // by stage
  std::vector<std::int32_t> free_;                       // slots that are read
};

void count_in_flight(const std::vector<Action>& row, std::vector<int>& weight_peak, std::vector<int>& input_peak) {
  std::vector<int> weights(weight_peak.size(), 0), inputs(input_peak.size(), 0);
  for (const Action& action : row) {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (action.kind == ComputeKind::forward) {
      weight_peak[stage] = std::max(weight_peak[stage], ++weights[stage]);
      input_peak[stage] = std::max(input_peak[stage], ++inputs[stage]);
    }
    if (ends_backward(kind_of(action.kind))) --weights[stage];
    if (begins_backward(kind_of(action.kind))) --inputs[stage];
  }
}

/// The most stages of a rank at once between their first and last backwards.
int count_accumulating(const std::vector<Action>& row, const PipelineShape& shape) {
  std::vector<int> begun(static_cast<std::size_t>(shape.stages())), ended(begun);
  int now = 0, out = 0;
  for (const Action& action : row) {
    const auto stage = static_cast<std::size_t>(action.stage);
    if (schedule::accumulates(kind_of(action.kind)) && ++begun[stage] == 1) out = std::max(out, ++now);
    if (ends_backward(kind_of(action.kind)) && ++ended[stage] == shape.microbatches) --now;
  }
  return out;
}

} // namespace

PostedRows::PostedRows(const Schedule& schedule, const PipelineShape& of)
    : shape(of), stage_rank(schedule.stage_rank().at(0)) {
  const auto stages = static_cast<std::size_t>(shape.stages());
  std::size_t all = 0;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    count_in_flight(schedule.row(rank), until_weight.emplace_back(stages, 0), until_input.emplace_back(stages, 0));
    accumulating.push_back(count_accumulating(schedule.row(rank), shape));
    all += schedule.row(rank).size();
  }
  passes.reserve(all);
  PassOrder(schedule, *this).run();
}

} // namespace triax::cost
