// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_costs.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/plan_bounds.hpp"
#include "plan/plan_space.hpp"
#include "plan/stage_sums.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

double bytes_of_type(DType dtype) {
  return static_cast<double>(bytes_of(dtype));
}

/// The least that `count` stages have at once, when each has a turn: which ones are together is not known, so it is
/// that of the smallest, or of the largest alone.
double least_at_once(std::vector<double>& parameters, std::size_t count) {
  std::ranges::sort(parameters);
  count = std::min(count, parameters.size());
  return std::max(parameters.back(),
                  std::accumulate(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(count), 0.0));
}

} // namespace

struct PlanCosts::LastSums {
  TrainingPlan plan; // with the first value of shard
  bool is_accepted = false;
  StageSums sums; // if it is accepted
};

PlanCosts::PlanCosts(const SearchRequest& request, const cost::CodeTraits& code, Log& log, ScheduleTable* schedules)
    : request_(request),
      cluster_(request.cluster),
      code_(code),
      layers_(request.run, cluster_, code_, log),
      schedules_(schedules ? *schedules : own_schedules_.emplace(request, layers_.plugins(1).model(), log)),
      splits_(layers_),
      acceptance_(request, layers_, schedules_, log),
      memory_(request, layers_, schedules_, acceptance_, log),
      operations_(cluster_.device, code_),
      collectives_(cluster_),
      optimizer_(layers_.plugins(1).optimizer_traits()) {}

PlanCosts::~PlanCosts() = default;

PipelineShape PlanCosts::shape_of(const TrainingPlan& plan) const {
  return {plan.pipeline, plan.chunks, static_cast<int>(plan.microbatches(request_.space.batch))};
}

void PlanCosts::require_inside(bool is_inside, const TrainingPlan& plan) {
  if (!is_inside)
    throw Error(text("a plan outside the space is asked for: {}", sizes_text(plan)), {},
                "report this to the author of the planner");
}

bool PlanCosts::has(const TrainingPlan& plan, const char* shard) const {
  return request_.space.shards[static_cast<std::size_t>(plan.shard)] == shard;
}

SplitSettings PlanCosts::split_settings(const TrainingPlan& plan) {
  return {.tensor = plan.tensor,
          .stages = plan.pipeline * plan.chunks,
          .micro = plan.micro,
          .sequence = splits_positions(plan),
          .recompute = plan.recompute,
          .stage_rank =
              plan.chunks > 1 ? schedules_.mapping(plan.schedule, shape_of(plan)).stage_rank : std::vector<int>()};
}

void PlanCosts::set_split(const TrainingPlan& plan, const Split& split) {
  splits_.set(split_settings(plan), split);
  last_sums_ = {};
  passes_.clear();
}

bool PlanCosts::is_split_accepted(const TrainingPlan& plan) {
  return !plan.balanced || request_.space.balanced.size() == 1 || !splits_.find(split_settings(plan)).is_even;
}

const StageSums* PlanCosts::find_sums(const TrainingPlan& plan, const PipelineShape& shape) {
  std::unique_ptr<LastSums>& last = last_sums_[plan.balanced ? 1 : 0];
  TrainingPlan of = plan;
  of.shard = 0;
  if (!last || last->plan != of) {
    last.reset(); // also if a plugin throws
    auto next = std::make_unique<LastSums>();
    next->plan = of;
    next->is_accepted = acceptance_.accepts(plan, shape) && is_split_accepted(plan);
    if (next->is_accepted) next->sums = make_sums(plan, shape);
    last = std::move(next);
  }
  return last->is_accepted ? &last->sums : nullptr;
}

StageSums PlanCosts::make_sums(const TrainingPlan& plan, const PipelineShape& shape) {
  StageSums out;
  out.mapping = &schedules_.mapping(plan.schedule, shape);
  out.rank_parameters.assign(static_cast<std::size_t>(plan.pipeline), 0);
  const std::vector<CostedLayer>& layers = layers_.layers(plan.tensor, plan.micro, splits_positions(plan));
  const std::vector<LayerLoad>&of_blocks = loads(plan, plan.recompute), &of_others = loads(plan, Recompute::none);
  const executor::LayerRange blocks = executor::recomputed_layers(layers_.plugins(1).model(), true);
  out.layers = plan.balanced ? executor::split_layers(layers_.plugins(1).model(), shape.stages(), split(plan))
                             : out.mapping->even;
  out.stages.reserve(out.layers.size());
  for (std::size_t at = 0; at < out.layers.size(); ++at) {
    const executor::StageLayers& of = out.layers[at];
    StageSums::Stage& stage = out.stages.emplace_back();
    const int end = of.first + of.count, all_blocks = std::min(end, blocks.end) - std::max(of.first, blocks.begin);
    const int early = blocks.has(end - 1) ? blocks_of_last_group(all_blocks, recompute_group(plan)) : 0;
    bool begins_group = true; // all blocks of the stage are one group at most
    for (int number = of.first; number < end; ++number) {
      const auto kind = static_cast<std::size_t>(layers_.kinds()[static_cast<std::size_t>(number)]);
      const CostedLayer& layer = layers[kind];
      const LayerLoad& load = (blocks.has(number) ? of_blocks : of_others)[kind];
      stage.forward += layer.time.forward;
      stage.input += layer.time.input;
      stage.weight += layer.time.weight;
      (number < end - early ? stage.input : stage.recompute) += load.repeated;
      stage.kept.until_input += load.kept.until_input;
      stage.kept.until_weight += load.kept.until_weight;
      if (blocks.has(number) && begins_group) {
        stage.kept.until_input += load.group_bytes;
        begins_group = false;
      }
      stage.parameters += layer.time.parameters;
      stage.boundary_bytes = layer.time.boundary_bytes;
    }
    stage.rank = out.mapping->stage_rank[at];
    out.rank_parameters[static_cast<std::size_t>(stage.rank)] += stage.parameters;
  }
  drop_ties(plan, out);
  return out;
}

/// A parameter of two layers on one pipeline rank is stored, reduced and updated once.
void PlanCosts::drop_ties(const TrainingPlan& plan, StageSums& sums) {
  const std::vector<double>& elements = layers_.tied_elements(plan.tensor);
  const std::span<const Tie> ties = layers_.plugins(1).model().ties();
  for (std::size_t at = 0; at < ties.size(); ++at) {
    StageSums::Stage& stage = sums.stages[sums.stage_of(ties[at].layer_b)];
    sums.ties.push_back({sums.stages[sums.stage_of(ties[at].layer_a)].rank, stage.rank});
    if (sums.ties.back().a != stage.rank) continue;
    stage.parameters -= elements[at];
    sums.rank_parameters[static_cast<std::size_t>(stage.rank)] -= elements[at];
    sums.tied += elements[at];
  }
}

double PlanCosts::update_s(const TrainingPlan& plan, double parameters) const {
  const double bytes =
      cost::update_bytes(code_, optimizer_.state.size(), request_.run.train.master, request_.run.train.compute);
  return operations_.pass(bytes * parameters / (shards(plan) ? plan.data : 1)).seconds;
}

cost::LinkTime PlanCosts::link_time(const TrainingPlan& plan, const StageSums& sums, int stage) const {
  const StageSums::Stage& from = sums.stages[static_cast<std::size_t>(stage)];
  const int to = sums.stages[static_cast<std::size_t>(stage) + 1].rank;
  return cost::link_time(cluster_, code_, from.boundary_bytes, scatters(request_.run, plan) ? plan.tensor : 1,
                         crosses_nodes(from.rank, to, plan.tensor * plan.data));
}

cost::PostedTimes PlanCosts::posted_times(const TrainingPlan& plan, const StageSums& sums) {
  cost::PostedTimes out;
  for (const StageSums::Stage& of : sums.stages)
    out.stages.push_back({of.forward_s(), of.input.all_s(), of.weight.all_s(), reduce_s(plan, of.parameters),
                          gather_s(plan, of.parameters), of.recompute.all_s()});
  for (int stage = 0; stage + 1 < static_cast<int>(sums.stages.size()); ++stage)
    out.links.push_back(link_time(plan, sums, stage));
  if (shards(plan) && has(plan, "parameters")) out.prefetch = static_cast<int>(request_.run.optimizer_core.prefetch);
  return out;
}

cost::RowsOfShape PlanCosts::rows_of(const TrainingPlan& plan) {
  return [this, schedule = plan.schedule](const PipelineShape& of) {
    return schedules_.supports(schedule, of) ? &schedules_.rows(schedule, of) : nullptr;
  };
}

/// Passes do not wait for reductions, so what data ranks shard changes them only if weights are gathered.
PlanCosts::Passes& PlanCosts::passes_of(const TrainingPlan& plan, const cost::PostedTimes& times) {
  TrainingPlan key = plan;
  key.shard = 0;
  if (const auto found = passes_.find(key); found != passes_.end()) return found->second;
  cost::PostedTimes sent = times;
  sent.prefetch = -1;
  cost::PostedTimes untransferred = sent;
  std::ranges::fill(untransferred.links, cost::LinkTime{});
  return passes_.emplace(key, Passes{cost::PostedPasses(std::move(sent)), cost::PostedPasses(std::move(untransferred))})
      .first->second;
}

PlanTime PlanCosts::simulated(const TrainingPlan& plan, const StageSums& sums) {
  const PipelineShape shape = shape_of(plan);
  const auto latest = [](const cost::RankEnds& ends) { return *std::ranges::max_element(ends); };
  PlanTime out;
  std::vector<double> work(sums.rank_parameters.size());
  for (const StageSums::Stage& stage : sums.stages) {
    work[static_cast<std::size_t>(stage.rank)] += shape.microbatches * (stage.compute_s() + stage.tensor_s());
    out.compute += shape.microbatches * stage.compute_s() / plan.pipeline;
    out.tensor += shape.microbatches * stage.tensor_s() / plan.pipeline;
  }
  const double busiest = *std::ranges::max_element(work);
  out.imbalance = std::max(0.0, busiest - out.compute - out.tensor);

  const cost::PostedTimes all = posted_times(plan, sums);
  const cost::RowsOfShape rows = rows_of(plan);
  std::vector<double> reduce_s;
  reduce_s.reserve(all.stages.size());
  for (const cost::PostedTimes::Stage& stage : all.stages) reduce_s.push_back(stage.reduce_s);
  Passes& passes = passes_of(plan, all);
  const cost::PostedEnds without_gathers = passes.sent.ends(rows, shape, reduce_s);
  const double gathered = latest(without_gathers.passes);
  const double untransferred = latest(passes.untransferred.ends(rows, shape, reduce_s).passes);
  const double reduced =
      all.prefetch < 0 ? latest(without_gathers.reductions) : latest(cost::posted_ends(rows, shape, all).reductions);
  out.bubble = std::max(0.0, untransferred - busiest);
  out.pipeline = gathered - untransferred;

  double update = 0, update_and_gather = 0;
  std::vector<double> gathers(work.size()); // after the updates
  for (const StageSums::Stage& stage : sums.stages)
    if (!has(plan, "parameters")) gathers[static_cast<std::size_t>(stage.rank)] += gather_s(plan, stage.parameters);
  for (std::size_t rank = 0; rank < gathers.size(); ++rank) {
    const double updates = update_s(plan, sums.rank_parameters[rank]);
    update = std::max(update, updates);
    update_and_gather = std::max(update_and_gather, updates + gathers[rank]);
  }
  out.optimizer = update;
  out.data = reduced - gathered + tied_s(plan, sums.ties) + update_and_gather - update;
  out.fixed = cluster_.step.fixed_s.value;
  return out;
}

/// Weights, gradients and optimizer state, without padding. Offloaded state may be in other memory. Beside the
/// parameters that are whole, a rank has its part of the others.
double PlanCosts::state_bytes(const TrainingPlan& plan, const RankParameters& parameters) const {
  const double master = bytes_of_type(request_.run.train.master), compute = bytes_of_type(request_.run.train.compute);
  const bool has_masters = request_.run.train.master != request_.run.train.compute; // beside the working weights
  const bool in_memory = request_.run.memory.offload == "none";
  const double states = in_memory ? master * (static_cast<double>(optimizer_.state.size()) + (has_masters ? 1 : 0)) : 0;
  const double divisor = shards(plan) ? plan.data : 1;
  const auto with_parts = [&](double whole) { return whole + (parameters.all - whole) / divisor; };
  const double divided = parameters.all * states / divisor;
  if (has(plan, "parameters"))
    return with_parts(parameters.gathered) * compute + with_parts(parameters.accumulated) * master + divided;
  if (has(plan, "gradients")) return parameters.all * compute + with_parts(parameters.accumulated) * master + divided;
  return parameters.all * (compute + master) + divided;
}

std::vector<double> PlanCosts::rank_bytes(const TrainingPlan& plan, const PipelineShape& shape, const StageSums& sums) {
  const cost::PostedRows& rows = schedules_.rows(plan.schedule, schedules_.cut(plan.schedule, shape).longer);
  std::vector<double> out(sums.rank_parameters.size());
  std::vector<std::vector<double>> of_stages(out.size()); // parameters
  for (std::size_t at = 0; at < sums.stages.size(); ++at) {
    const StageSums::Stage& stage = sums.stages[at];
    const auto rank = static_cast<std::size_t>(stage.rank);
    of_stages[rank].push_back(stage.parameters);
    out[rank] +=
        stage.kept.until_input * rows.until_input[rank][at] + stage.kept.until_weight * rows.until_weight[rank][at];
  }
  // With prefetch, the weights of the stage that runs next are there as well.
  const std::size_t gathered = request_.run.optimizer_core.prefetch > 0 ? 2 : 1;
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    const auto at_once = [&](std::size_t stages) { // the stage that stores a tied parameter may be either of the two
      return std::max(0.0, least_at_once(of_stages[rank], stages) - sums.tied);
    };
    out[rank] += state_bytes(plan, {sums.rank_parameters[rank],
                                    at_once(static_cast<std::size_t>(rows.accumulating[rank])), at_once(gathered)});
  }
  return out;
}

std::uint64_t PlanCosts::schedule_bytes(const TrainingPlan& plan, const PipelineShape& shape, const StageSums& sums) {
  return static_cast<std::uint64_t>(std::ranges::max(rank_bytes(plan, shape, sums)));
}

std::optional<PlanTime> PlanCosts::time(const TrainingPlan& plan) {
  require_inside(contains(request_.space, plan), plan);
  if (const auto found = timed_.find(plan); found != timed_.end()) return found->second;
  const PipelineShape shape = shape_of(plan);
  std::optional<PlanTime> out;
  const StageSums* const sums = find_sums(plan, shape);
  if (sums && schedule_bytes(plan, shape, *sums) <= request_.memory_limit) {
    out = simulated(plan, *sums);
    ++simulated_;
  }
  return timed_.emplace(plan, out).first->second;
}

std::optional<PlanEvaluation> PlanCosts::evaluate(const TrainingPlan& plan) {
  require_inside(contains(request_.space, plan), plan);
  if (const auto found = evaluated_.find(plan); found != evaluated_.end()) return found->second;
  const PipelineShape shape = shape_of(plan);
  if (!acceptance_.accepts(plan, shape)) return evaluated_[plan] = std::nullopt;
  if (const std::optional<PlanBounds> bounds = bounds_of_any_split(plan, totals(plan)))
    return evaluated_[plan] = PlanEvaluation{false, bounds->bytes, {}};
  const StageSums* const sums = find_sums(plan, shape);
  if (!sums) return evaluated_[plan] = std::nullopt;
  PlanEvaluation out;
  out.bytes = schedule_bytes(plan, shape, *sums);
  if (out.bytes <= request_.memory_limit) {
    const PlanMemory::Answer exact =
        memory_.of(plan, split(plan), rank_bytes(plan, shape, *sums), request_.memory_limit);
    if (!exact.refusals.empty()) return evaluated_[plan] = std::nullopt;
    out.bytes = exact.bytes;
  }
  out.fits = out.bytes <= request_.memory_limit;
  if (out.fits) out.time = time(plan).value();
  return evaluated_[plan] = out;
}

std::optional<std::uint64_t> PlanCosts::exact_bytes(const TrainingPlan& plan) {
  if (!is_split_accepted(plan)) return std::nullopt;
  const PlanMemory::Answer exact = memory_.of(plan, split(plan), {}, std::numeric_limits<std::uint64_t>::max());
  return exact.refusals.empty() ? std::optional(exact.bytes) : std::nullopt;
}

Refusals PlanCosts::refusals(const TrainingPlan& plan) {
  require_inside(contains(request_.space, plan), plan);
  Refusals out = acceptance_.refusals(plan, shape_of(plan));
  if (out.empty()) out = memory_.of(plan, split(plan), {}, std::numeric_limits<std::uint64_t>::max()).refusals;
  return out;
}

} // namespace triax::plan
