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

/// Seconds of the passes of each stage, by kind.
class PassLengths {
 public:
  PassLengths(const PostedRows& rows, const PostedTimes& times)
      : stages_(times.stages.size()), seconds_(kComputeKinds * stages_), recompute_s_(seconds_.size()) {
    for (std::size_t at = 0; at < stages_; ++at) {
      const PostedTimes::Stage& of = times.stages[at];
      const double before = at > 0 && rows.stage_rank[at] != rows.stage_rank[at - 1] ? times.links[at - 1].gather_s : 0,
                   after = at + 1 < stages_ && rows.stage_rank[at] != rows.stage_rank[at + 1] ? times.links[at].gather_s
                                                                                              : 0;
      seconds(ComputeKind::forward, at) = of.forward_s + before;
      seconds(ComputeKind::backward, at) = of.input_s + of.weight_s + after;
      seconds(ComputeKind::backward_input, at) = of.input_s + after;
      seconds(ComputeKind::backward_weight, at) = of.weight_s;
      for (const ComputeKind kind : {ComputeKind::backward, ComputeKind::backward_input})
        recompute_s_[index(kind, at)] = of.recompute_s;
    }
  }
  double of(const Pass& pass) const { return seconds_[index(pass.kind, static_cast<std::size_t>(pass.stage))]; }
  /// The time of what runs before the pass, also while its gradient is on its way.
  double recompute_of(const Pass& pass) const {
    return recompute_s_[index(pass.kind, static_cast<std::size_t>(pass.stage))];
  }

 private:
  static constexpr std::size_t kComputeKinds = 4;
  std::size_t index(ComputeKind kind, std::size_t stage) const {
    return static_cast<std::size_t>(kind) * stages_ + stage;
  }
  double& seconds(ComputeKind kind, std::size_t stage) { return seconds_[index(kind, stage)]; }

  std::size_t stages_;
  std::vector<double> seconds_, recompute_s_;
};

/// The gathers of weights, and the reductions of gradients, that a rank posts.
class RankPosts {
 public:
  RankPosts(const std::vector<Action>& row, const PostedTimes& times)
      : times_(times), uses_(row, times.prefetch), weights_s_(times.stages.size()) {}

  /// Posts the gathers before the next pass of the row, at `now`; when the weights that it reads are there.
  double gather(const Pass& pass, double now) {
    for (const int stage : uses_.gathered_before(at_)) {
      const auto index = static_cast<std::size_t>(stage);
      ends_s_ = std::max(ends_s_, now) + times_.stages[index].weights_s;
      weights_s_[index] = ends_s_;
    }
    uses_.dropped_after(at_++);
    return pass.kind == ComputeKind::backward_weight ? 0 : weights_s_[static_cast<std::size_t>(pass.stage)];
  }
  /// When the gradients of a stage are reduced, whose last backward ends at `now`.
  double reduce(int stage, double now) {
    ends_s_ = std::max(ends_s_, now) + times_.stages[static_cast<std::size_t>(stage)].reduce_s;
    return ends_s_;
  }

 private:
  const PostedTimes& times_;
  schedule::WeightUses uses_;
  std::size_t at_ = 0;            // next pass
  double ends_s_ = 0;             // when what is posted has ended
  std::vector<double> weights_s_; // by stage: when its weights are there
};

/// Visits all passes in their order: `start(pass, free)` is when a pass may begin on a rank that is free then, and
/// `end(pass, s)` is called with its end.
template <class Start, class End>
RankEnds walk(const PostedRows& rows, const PostedTimes& times, const Start& start, const End& end) {
  const PassLengths lengths(rows, times);
  std::vector<double> free_s(rows.until_input.size()), nic_s(free_s.size()); // when a rank, and its NIC, are free
  std::vector<double> arrived_s(static_cast<std::size_t>(rows.slots));
  for (const Pass& pass : rows.passes) {
    double& free = free_s[static_cast<std::size_t>(pass.rank)];
    double begin = start(pass, free) + lengths.recompute_of(pass);
    if (pass.reads >= 0) begin = std::max(begin, arrived_s[static_cast<std::size_t>(pass.reads)]);
    free = begin + lengths.of(pass);
    end(pass, free);
    if (pass.writes < 0) continue;
    double& arrival = arrived_s[static_cast<std::size_t>(pass.writes)];
    arrival = free;
    if (pass.link < 0) continue;
    const LinkTime& link = times.links[static_cast<std::size_t>(pass.link)];
    double& nic = nic_s[static_cast<std::size_t>(pass.rank)];
    nic = std::max(nic, free) + link.seconds;
    arrival = nic + link.latency_s;
  }
  return free_s;
}

std::vector<std::vector<Action>> rows_by_rank(const PostedRows& rows) {
  std::vector<std::vector<Action>> out(rows.until_input.size());
  for (const Pass& pass : rows.passes)
    out[static_cast<std::size_t>(pass.rank)].push_back({pass.kind, 0, pass.stage, 0, 0});
  return out;
}

PostedEnds time_with_gathers(const PostedRows& rows, const PostedTimes& times) {
  std::vector<RankPosts> posts;
  for (const std::vector<Action>& row : rows_by_rank(rows)) posts.emplace_back(row, times);
  RankEnds reduced(posts.size());
  PostedEnds out;
  out.passes = walk(
      rows, times,
      [&](const Pass& pass, double now) {
        return std::max(now, posts[static_cast<std::size_t>(pass.rank)].gather(pass, now));
      },
      [&](const Pass& pass, double now) {
        const auto rank = static_cast<std::size_t>(pass.rank);
        if (pass.ends_stage) reduced[rank] = posts[rank].reduce(pass.stage, now);
      });
  for (std::size_t rank = 0; rank < reduced.size(); ++rank)
    out.reductions.push_back(std::max(out.passes[rank], reduced[rank]));
  return out;
}

/// The ends of the passes; sets the end of the last backward of each stage.
RankEnds time_passes(const PostedRows& rows, const PostedTimes& times, std::vector<double>& backwards) {
  backwards.assign(times.stages.size(), 0);
  return walk(
      rows, times, [](const Pass&, double now) { return now; },
      [&](const Pass& pass, double now) {
        if (pass.ends_stage) backwards[static_cast<std::size_t>(pass.stage)] = now;
      });
}

/// A rank posts the reductions of its stages in the order of their last backwards.
RankEnds time_reductions(const PostedRows& rows, const RankEnds& passes, const std::vector<double>& backwards,
                         std::span<const double> reduce_s) {
  RankEnds posted(passes.size());
  for (const std::int32_t number : rows.ended_stages) {
    const auto stage = static_cast<std::size_t>(number);
    double& ends = posted[static_cast<std::size_t>(rows.stage_rank[stage])];
    ends = std::max(ends, backwards[stage]) + reduce_s[stage];
  }
  for (std::size_t rank = 0; rank < passes.size(); ++rank) posted[rank] = std::max(posted[rank], passes[rank]);
  return posted;
}

std::vector<double> reductions_of(const PostedTimes& times) {
  std::vector<double> out;
  out.reserve(times.stages.size());
  for (const PostedTimes::Stage& of : times.stages) out.push_back(of.reduce_s);
  return out;
}

} // namespace

PostedEnds time_posted(const PostedRows& rows, const PostedTimes& times) {
  if (times.prefetch >= 0) return time_with_gathers(rows, times);
  std::vector<double> backwards;
  PostedEnds out;
  out.passes = time_passes(rows, times, backwards);
  out.reductions = time_reductions(rows, out.passes, backwards, reductions_of(times));
  return out;
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
  std::vector<double> work(rows.until_input.size());
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

/// See posted_ends(). `time_rows(rows)` has the ends of a part of the microbatches.
template <class TimeRows>
PostedEnds extrapolated_ends(const RowsOfShape& rows, const PipelineShape& shape, const PostedTimes& times,
                             const TimeRows& time_rows) {
  for (int periods = kFewPeriods;; periods *= 2) {
    const CutShapes cut = cut_shapes(shape, periods);
    const PostedRows* const longer_rows = cut.periods > 0 ? rows(cut.longer) : nullptr;
    const PostedRows* const shorter_rows = longer_rows ? rows(cut.shorter) : nullptr;
    const PostedRows* const shortest_rows = shorter_rows ? rows(cut.shortest) : nullptr;
    if (!shortest_rows) {
      const PostedRows* const whole = rows(shape);
      TRIAX_REQUIRE(whole, "the scheduler does not support {} microbatches", shape.microbatches);
      return time_rows(*whole);
    }
    PostedEnds longer = time_rows(*longer_rows);
    const PostedEnds shorter = time_rows(*shorter_rows), shortest = time_rows(*shortest_rows);
    const double work = period_work(*longer_rows, times);
    if (!is_steady(longer.passes, shorter.passes, shortest.passes, work) ||
        !is_steady(longer.reductions, shorter.reductions, shortest.reductions, work))
      continue;
    extrapolate(longer.passes, shorter.passes, cut.periods);
    extrapolate(longer.reductions, shorter.reductions, cut.periods);
    return longer;
  }
}

} // namespace

PostedEnds posted_ends(const RowsOfShape& rows, const PipelineShape& shape, const PostedTimes& times) {
  return extrapolated_ends(rows, shape, times, [&](const PostedRows& of) { return time_posted(of, times); });
}

PostedEnds PostedPasses::ends(const RowsOfShape& rows, const PipelineShape& shape, std::span<const double> reduce_s) {
  return extrapolated_ends(rows, shape, times_, [&](const PostedRows& of) {
    const auto [found, is_new] = walked_.try_emplace(&of);
    Walked& walked = found->second;
    if (is_new) walked.passes = time_passes(of, times_, walked.backwards);
    return PostedEnds{walked.passes, time_reductions(of, walked.passes, walked.backwards, reduce_s)};
  });
}

} // namespace triax::cost
