// SPDX-License-Identifier: Apache-2.0
#include "cost/posted_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedule/weight_uses.hpp"
#include "triax/error.hpp"

namespace triax::cost {

namespace {

using Pass = PostedRows::Pass;

bool makes_input(ComputeKind kind) {
  return kind == ComputeKind::backward || kind == ComputeKind::backward_input;
}
bool ends_backward(ComputeKind kind) {
  return kind == ComputeKind::backward || kind == ComputeKind::backward_weight;
}

/// The position of the last backward of each stage in a row; -1: not in the row.
std::vector<std::ptrdiff_t> last_backwards(const std::vector<Pass>& row, int stages) {
  std::vector<std::ptrdiff_t> out(static_cast<std::size_t>(stages), -1);
  for (std::size_t at = 0; at < row.size(); ++at)
    if (ends_backward(row[at].kind)) out[static_cast<std::size_t>(row[at].stage)] = static_cast<std::ptrdiff_t>(at);
  return out;
}

/// Walks the rows of all ranks as far as their inputs have arrived.
class PostedWalk {
 public:
  PostedWalk(const PostedRows& rows, const PostedTimes& times)
      : rows_(rows),
        times_(times),
        microbatches_(static_cast<std::size_t>(rows.shape.microbatches)),
        arrived_f_(static_cast<std::size_t>(rows.shape.stages()) * microbatches_, kNotYet),
        arrived_b_(arrived_f_.size(), kNotYet),
        ranks_(rows.rows.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].last_backward = last_backwards(rows.rows[rank], rows.shape.stages());
      if (times.prefetch >= 0) gather_lists(rank);
    }
  }

  PostedEnds run() {
    std::vector<std::size_t> ready;
    for (std::size_t rank = ranks_.size(); rank > 0; --rank) ready.push_back(rank - 1);
    std::swap(ready_, ready);
    while (!ready_.empty()) {
      const std::size_t rank = ready_.back();
      ready_.pop_back();
      advance(rank);
    }
    PostedEnds out;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& of = ranks_[rank];
      if (of.at < rows_.rows[rank].size()) throw Error(text("rank {} cannot complete its row", rank));
      out.passes.push_back(of.free_s);
      out.reductions.push_back(std::max(of.free_s, of.reduced_s));
    }
    return out;
  }

 private:
  static constexpr double kNotYet = -1;

  struct Rank {
    std::size_t at = 0;
    double free_s = 0;                         // end of the last pass
    double nic_s = 0;                          // when its NIC has sent all messages
    double posts_s = 0;                        // when the reductions and gathers that are posted have ended
    double reduced_s = 0;                      // when the last reduction has
    const double* waits_for = nullptr;         // an arrival
    std::vector<std::ptrdiff_t> last_backward; // by stage
    std::vector<std::vector<int>> gathered;    // stages whose weights are gathered before a pass
    std::vector<double> weights_s;             // by stage: when its weights are there
  };

  void gather_lists(std::size_t rank) {
    std::vector<Action> row;
    for (const Pass& pass : rows_.rows[rank]) row.push_back({pass.kind, 0, pass.stage, pass.microbatch, 0});
    schedule::WeightUses uses(row, times_.prefetch);
    for (std::size_t at = 0; at < row.size(); ++at) {
      ranks_[rank].gathered.push_back(uses.gathered_before(at));
      uses.dropped_after(at);
    }
    ranks_[rank].weights_s.resize(static_cast<std::size_t>(rows_.shape.stages()));
  }

  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  const LinkTime& link(int stage) const { return times_.links[static_cast<std::size_t>(stage)]; }
  bool is_elsewhere(int one, int other) const {
    return rows_.stage_rank[static_cast<std::size_t>(one)] != rows_.stage_rank[static_cast<std::size_t>(other)];
  }

  /// Null: the pass reads nothing of another stage.
  double* arrival_of(const Pass& pass) {
    if (pass.kind == ComputeKind::forward)
      return pass.stage == 0 ? nullptr : &arrived_f_[index(pass.stage, pass.microbatch)];
    const bool reads = makes_input(pass.kind) && pass.stage + 1 < rows_.shape.stages();
    return reads ? &arrived_b_[index(pass.stage, pass.microbatch)] : nullptr;
  }

  double length_of(const Pass& pass) const {
    const PostedTimes::Stage& of = times_.stages[static_cast<std::size_t>(pass.stage)];
    switch (pass.kind) {
      case ComputeKind::forward:
        return of.forward_s +
               (pass.stage > 0 && is_elsewhere(pass.stage, pass.stage - 1) ? gather_s(pass.stage - 1) : 0);
      case ComputeKind::backward_weight:
        return of.weight_s;
      default: {
        const bool gathers = pass.stage + 1 < rows_.shape.stages() && is_elsewhere(pass.stage, pass.stage + 1);
        return of.input_s + (pass.kind == ComputeKind::backward ? of.weight_s : 0) +
               (gathers ? gather_s(pass.stage) : 0);
      }
    }
  }
  double gather_s(int stage) const { return link(stage).gather_s; }

  void advance(std::size_t rank) {
    Rank& of = ranks_[rank];
    const std::vector<Pass>& row = rows_.rows[rank];
    for (; of.at < row.size(); ++of.at) {
      const Pass& pass = row[of.at];
      const double* arrival = arrival_of(pass);
      if (arrival && *arrival == kNotYet) {
        of.waits_for = arrival;
        return;
      }
      double ready = of.free_s;
      if (times_.prefetch >= 0) ready = std::max(ready, gathered_s(of, pass));
      if (makes_input(pass.kind)) ready += times_.stages[static_cast<std::size_t>(pass.stage)].recompute_s;
      of.free_s = std::max(ready, arrival ? *arrival : 0) + length_of(pass);
      deliver(of, pass);
      if (of.last_backward[static_cast<std::size_t>(pass.stage)] == static_cast<std::ptrdiff_t>(of.at))
        reduce(of, pass);
    }
  }

  /// Posts the gathers before the pass; when the weights that it reads are there.
  double gathered_s(Rank& of, const Pass& pass) const {
    for (const int stage : of.gathered[of.at]) {
      of.posts_s = std::max(of.posts_s, of.free_s) + times_.stages[static_cast<std::size_t>(stage)].weights_s;
      of.weights_s[static_cast<std::size_t>(stage)] = of.posts_s;
    }
    return pass.kind == ComputeKind::backward_weight ? 0 : of.weights_s[static_cast<std::size_t>(pass.stage)];
  }

  void reduce(Rank& of, const Pass& pass) const {
    of.posts_s = std::max(of.posts_s, of.free_s) + times_.stages[static_cast<std::size_t>(pass.stage)].reduce_s;
    of.reduced_s = of.posts_s;
  }

  void deliver(Rank& of, const Pass& pass) {
    if (pass.kind == ComputeKind::forward) {
      if (pass.stage + 1 < rows_.shape.stages()) send(of, pass, pass.stage + 1, pass.stage, arrived_f_);
    } else if (makes_input(pass.kind) && pass.stage > 0) {
      send(of, pass, pass.stage - 1, pass.stage - 1, arrived_b_);
    }
  }
  void send(Rank& of, const Pass& pass, int to, int boundary, std::vector<double>& arrived) {
    double& arrival = arrived[index(to, pass.microbatch)];
    arrival = of.free_s;
    if (is_elsewhere(pass.stage, to)) {
      of.nic_s = std::max(of.nic_s, of.free_s) + link(boundary).seconds;
      arrival = of.nic_s + link(boundary).latency_s;
    }
    const auto rank = static_cast<std::size_t>(rows_.stage_rank[static_cast<std::size_t>(to)]);
    if (ranks_[rank].waits_for != &arrival) return;
    ranks_[rank].waits_for = nullptr;
    ready_.push_back(rank);
  }

  const PostedRows& rows_;
  const PostedTimes& times_;
  const std::size_t microbatches_;
  std::vector<double> arrived_f_, arrived_b_; // by stage that reads, and microbatch
  std::vector<Rank> ranks_;
  std::vector<std::size_t> ready_;
};

} // namespace

PostedRows::PostedRows(const Schedule& schedule, const PipelineShape& of)
    : shape(of), stage_rank(schedule.stage_rank().at(0)) {
  const auto stages = static_cast<std::size_t>(shape.stages());
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Pass>& row = rows.emplace_back();
    std::vector<int> weights(stages, 0), inputs(stages, 0);
    std::vector<int>&weight_peak = until_weight.emplace_back(stages, 0),
    &input_peak = until_input.emplace_back(stages, 0);
    row.reserve(schedule.row(rank).size());
    for (const Action& action : schedule.row(rank)) {
      row.push_back({action.kind, action.stage, action.microbatch});
      const auto stage = static_cast<std::size_t>(action.stage);
      if (action.kind == ComputeKind::forward) {
        weight_peak[stage] = std::max(weight_peak[stage], ++weights[stage]);
        input_peak[stage] = std::max(input_peak[stage], ++inputs[stage]);
      }
      if (ends_backward(action.kind)) --weights[stage];
      if (makes_input(action.kind)) --inputs[stage];
      splits_backward |= action.kind == ComputeKind::backward_input;
    }
  }
}

PostedEnds time_posted(const PostedRows& rows, const PostedTimes& times) {
  return PostedWalk(rows, times).run();
}

CutShapes cut_shapes(const PipelineShape& shape, int periods) {
  CutShapes out{shape, shape, shape, std::max(0, shape.microbatches / shape.pipeline - periods + 1)};
  out.longer.microbatches -= out.periods * shape.pipeline;
  out.shorter.microbatches = out.longer.microbatches - shape.pipeline;
  out.shortest.microbatches = out.shorter.microbatches - shape.pipeline;
  return out;
}

namespace {

/// The compute time of the busiest rank in a period of p microbatches.
double period_work(const PostedRows& rows, const PostedTimes& times) {
  std::vector<double> work(rows.rows.size());
  for (std::size_t stage = 0; stage < times.stages.size(); ++stage) {
    const PostedTimes::Stage& of = times.stages[stage];
    work[static_cast<std::size_t>(rows.stage_rank[stage])] += of.forward_s + of.input_s + of.weight_s + of.recompute_s;
  }
  return rows.shape.pipeline * *std::ranges::max_element(work);
}

/// Whether the last two periods take equally long, on all ranks, and no less than the busiest rank computes: before it
/// limits the others, periods can take less.
bool is_steady(const RankEnds& longer, const RankEnds& shorter, const RankEnds& shortest, double work) {
  constexpr double kRounding = 1e-11;
  const double period = longer[0] - shorter[0], allowed = kRounding * longer[0];
  if (period < work - allowed) return false;
  for (std::size_t rank = 0; rank < longer.size(); ++rank)
    if (std::abs(longer[rank] - shorter[rank] - period) > allowed ||
        std::abs(shorter[rank] - shortest[rank] - period) > allowed)
      return false;
  return true;
}

void extrapolate(RankEnds& longer, const RankEnds& shorter, int periods) {
  for (std::size_t rank = 0; rank < longer.size(); ++rank) longer[rank] += periods * (longer[rank] - shorter[rank]);
}

} // namespace

PostedEnds posted_ends(const RowsOfShape& rows, const PipelineShape& shape, const PostedTimes& times) {
  for (int periods = kFewPeriods;; periods *= 2) {
    const CutShapes cut = cut_shapes(shape, periods);
    const PostedRows* const longer_rows = cut.periods > 0 ? rows(cut.longer) : nullptr;
    const PostedRows* const shorter_rows = longer_rows ? rows(cut.shorter) : nullptr;
    const PostedRows* const shortest_rows = shorter_rows ? rows(cut.shortest) : nullptr;
    if (!shortest_rows) {
      const PostedRows* const whole = rows(shape);
      TRIAX_REQUIRE(whole, "the scheduler does not support {} microbatches", shape.microbatches);
      return time_posted(*whole, times);
    }
    PostedEnds longer = time_posted(*longer_rows, times);
    const PostedEnds shorter = time_posted(*shorter_rows, times), shortest = time_posted(*shortest_rows, times);
    const double work = period_work(*longer_rows, times);
    if (!is_steady(longer.passes, shorter.passes, shortest.passes, work) ||
        !is_steady(longer.reductions, shorter.reductions, shortest.reductions, work))
      continue;
    extrapolate(longer.passes, shorter.passes, cut.periods);
    extrapolate(longer.reductions, shorter.reductions, cut.periods);
    return longer;
  }
}

} // namespace triax::cost
