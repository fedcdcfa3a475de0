// SPDX-License-Identifier: Apache-2.0
// Bounds of plans, from classes of stages (stage_classes.hpp) instead of all layers: a search asks for a million.
#include "plan/plan_bounds.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "plan/plan_costs.hpp"
#include "plan/plan_space.hpp"
#include "plan/stage_sums.hpp"

namespace triax::plan {

namespace {

// Sums have another order than those of the simulation and of memory.
constexpr double kRounding = 1e-9, kByteRounding = 1e-12;

std::uint64_t whole_bytes(double bytes) {
  return static_cast<std::uint64_t>(bytes * (1 - kByteRounding));
}

/// Settings that decide which ranks have which stages; the others are those of the first plan.
TrainingPlan group_of(const TrainingPlan& plan) {
  TrainingPlan out = plan;
  out.recompute = Recompute::none;
  out.sequence = out.balanced = false;
  out.shard = 0;
  return out;
}

/// Sums over the layers of a stage, for a microbatch.
struct StageLoads {
  double forward = 0, backward = 0, work = 0, parameters = 0, kept = 0;
};

/// The layers of a model by kind. Blocks recompute; other layers do not.
struct LayerKinds {
  const std::vector<CostedLayer>& layers;
  const std::vector<LayerLoad>&of_blocks, &of_others;
};

/// Sums of layers by kind; `blocks` and `others` are their numbers. A backward follows that of the next stage without
/// what R has repeated before, which is at most a group of the slowest blocks.
StageLoads loads_of_stage(const StageClasses::Stage& stage, const LayerKinds& kinds, bool splits_backward, int group) {
  StageLoads out;
  double slowest = 0; // of repeated blocks
  for (std::size_t kind = 0; kind < kinds.layers.size(); ++kind) {
    const cost::LayerTime& time = kinds.layers[kind].time;
    const LayerLoad &of_block = kinds.of_blocks[kind], &of_other = kinds.of_others[kind];
    const double blocks = stage.blocks[kind], others = stage.others[kind], all = blocks + others;
    const double forward = time.forward.all_s(), input = time.input.all_s(), weight = time.weight.all_s();
    const double repeated = blocks * of_block.repeated.all_s();
    out.forward += all * forward;
    out.backward += all * (input + (splits_backward ? 0 : weight)) + repeated;
    out.work += all * (forward + input + weight) + repeated;
    if (blocks > 0) slowest = std::max(slowest, of_block.repeated.all_s());
    out.parameters += all * time.parameters;
    out.kept += blocks * of_block.kept.all() + others * of_other.kept.all();
  }
  const int all_blocks = std::accumulate(stage.blocks.begin(), stage.blocks.end(), 0);
  out.backward -= blocks_of_last_group(all_blocks, group) * slowest;
  if (stage.first_block >= 0) out.kept += kinds.of_blocks[static_cast<std::size_t>(stage.first_block)].group_bytes;
  return out;
}

} // namespace

const PlanCosts::LayerTotals& PlanCosts::totals(const TrainingPlan& plan) {
  const bool sequence = splits_positions(plan);
  const auto [found, is_new] = totals_.try_emplace(std::tuple(plan.tensor, plan.micro, sequence, plan.recompute));
  LayerTotals& out = found->second;
  if (!is_new) return out;
  const std::vector<CostedLayer>& layers = layers_.layers(plan.tensor, plan.micro, sequence);
  const std::vector<LayerLoad>&of_blocks = loads(plan, plan.recompute), &of_others = loads(plan, Recompute::none);
  const executor::LayerRange blocks = executor::recomputed_layers(layers_.plugins(1).model(), true);
  for (std::size_t number = 0; number < layers_.kinds().size(); ++number) {
    const auto kind = static_cast<std::size_t>(layers_.kinds()[number]);
    out.parameters += layers[kind].time.parameters;
    out.kept += (blocks.has(static_cast<int>(number)) ? of_blocks : of_others)[kind].kept.all();
  }
  for (const double elements : layers_.tied_elements(plan.tensor)) out.parameters -= elements;
  return out;
}

/// No rank needs less than the mean of all.
std::optional<PlanBounds> PlanCosts::bounds_of_any_split(const TrainingPlan& plan, const LayerTotals& all) const {
  if (!plan.balanced) return std::nullopt;
  const std::uint64_t bytes =
      whole_bytes(all.kept / plan.pipeline + state_bytes(plan, {all.parameters / plan.pipeline, 0, 0}));
  if (bytes <= request_.memory_limit) return std::nullopt;
  return PlanBounds{cluster_.step.fixed_s.value, bytes};
}

const StageClasses& PlanCosts::even_classes(const StageMapping& mapping) {
  const auto found = even_classes_.find(&mapping);
  if (found != even_classes_.end()) return found->second;
  return even_classes_.emplace(&mapping, classes_of(layers_.plugins(1).model(), layers_.kinds(), mapping.even, mapping))
      .first->second;
}

std::vector<PlanCosts::RankBounds> PlanCosts::bounds_of_ranks(const TrainingPlan& plan, const StageClasses& classes,
                                                              const StageMapping& mapping) {
  const LayerKinds kinds{layers_.layers(plan.tensor, plan.micro, splits_positions(plan)), loads(plan, plan.recompute),
                         loads(plan, Recompute::none)};
  std::vector<StageLoads> stages;
  stages.reserve(classes.stages.size());
  for (const StageClasses::Stage& stage : classes.stages)
    stages.push_back(loads_of_stage(stage, kinds, mapping.splits_backward, recompute_group(plan)));
  const std::vector<double>& tied_elements = layers_.tied_elements(plan.tensor);
  std::vector<RankBounds> out;
  for (const StageClasses::Rank& rank : classes.ranks) {
    RankBounds& of = out.emplace_back();
    for (std::size_t of_class = 0; of_class < stages.size(); ++of_class) {
      of.before += rank.before[of_class] * stages[of_class].forward;
      of.after += rank.before[of_class] * stages[of_class].backward;
    }
    for (std::size_t at = 0; at < rank.stages.size(); ++at) {
      const StageLoads& stage = stages[static_cast<std::size_t>(rank.stages[at])];
      double parameters = stage.parameters; // tied ones are stored, reduced and updated once
      for (const StageClasses::Rank::Tied& tied : rank.tied)
        if (tied.stage == at) parameters -= tied_elements[tied.tie];
      of.work += stage.work;
      of.kept += stage.kept;
      of.parameters += parameters;
      of.largest_parameters = std::max(of.largest_parameters, parameters);
      if (at == 0) of.lowest_parameters = parameters;
    }
  }
  return out;
}

PlanCosts::LastBounds& PlanCosts::bounded_group(const TrainingPlan& plan) {
  const TrainingPlan group = group_of(plan);
  if (last_bounds_ && last_bounds_->group == group) {
    require_inside(contains_settings(request_.space, plan), plan);
    return *last_bounds_;
  }
  require_inside(contains(request_.space, plan), plan);
  last_bounds_.reset(); // also if a plugin throws
  auto next = std::make_unique<LastBounds>();
  next->group = group;
  const PipelineShape shape = shape_of(plan);
  next->is_accepted = acceptance_.accepts_layout(plan, shape);
  if (next->is_accepted) next->mapping = &schedules_.mapping(plan.schedule, shape);
  last_bounds_ = std::move(next);
  return *last_bounds_;
}

PlanCosts::StageBounds PlanCosts::stage_bounds(const TrainingPlan& plan, const StageMapping& mapping) {
  StageBounds out{plan.recompute, plan.sequence, is_split_accepted(plan)};
  if (!out.is_accepted) return out;
  StageClasses balanced;
  if (plan.balanced) {
    const Model& model = layers_.plugins(1).model();
    balanced = classes_of(model, layers_.kinds(),
                          executor::split_layers(model, plan.pipeline * plan.chunks, split(plan)), mapping);
  }
  const StageClasses& classes = plan.balanced ? balanced : even_classes(mapping);
  out.ranks = bounds_of_ranks(plan, classes, mapping);
  out.tied_s = tied_s(plan, classes.ties);
  for (std::size_t tie = 0; tie < classes.ties.size(); ++tie)
    if (classes.ties[tie].a == classes.ties[tie].b) out.tied += layers_.tied_elements(plan.tensor)[tie];
  return out;
}

std::optional<PlanBounds> PlanCosts::bounds(const TrainingPlan& plan) {
  LastBounds& last = bounded_group(plan);
  if (!last.is_accepted) return std::nullopt;
  std::optional<LastBounds::LayerBounds>& layers =
      last.layers[static_cast<std::size_t>(plan.recompute)][plan.sequence ? 1 : 0];
  if (!layers) {
    const bool is_accepted = acceptance_.accepts_layers(plan);
    layers = LastBounds::LayerBounds{is_accepted, is_accepted ? &totals(plan) : nullptr};
  }
  if (!layers->is_accepted) return std::nullopt;
  if (const std::optional<PlanBounds> out = bounds_of_any_split(plan, *layers->totals)) return out;
  std::optional<StageBounds>& stages = last.of_stages[plan.balanced ? 1 : 0];
  if (!stages || stages->recompute != plan.recompute || stages->sequence != plan.sequence)
    stages = stage_bounds(plan, *last.mapping);
  if (!stages->is_accepted) return std::nullopt;
  double bytes = 0;
  // The stage that stores a tied parameter may be either of the two. In each stage, a microbatch is in flight.
  for (const RankBounds& rank : stages->ranks) {
    const double stage = std::max(0.0, rank.largest_parameters - stages->tied);
    bytes = std::max(bytes, rank.kept + state_bytes(plan, {rank.parameters, stage, stage}));
  }
  PlanBounds out{cluster_.step.fixed_s.value, whole_bytes(bytes)};
  if (out.bytes > request_.memory_limit) return out; // its time does not count
  const double microbatches = shape_of(plan).microbatches;
  double passes = 0, update = 0;
  for (const RankBounds& rank : stages->ranks) {
    // The first pass of a rank waits for a forward of all stages before it. Its last pass is a backward of its lowest
    // stage, which the backwards of the stages before follow; a weight gradient may be later than these.
    const double follows =
        last.mapping->splits_backward ? 0 : std::max(rank.after, reduce_s(plan, rank.lowest_parameters));
    passes = std::max(passes, rank.before + microbatches * rank.work + follows);
    update = std::max(update, update_s(plan, rank.parameters));
  }
  out.step_s = (passes + update + stages->tied_s + cluster_.step.fixed_s.value) * (1 - kRounding);
  return out;
}

} // namespace triax::plan
