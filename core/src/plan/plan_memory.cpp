// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_memory.hpp"

#include <algorithm>
#include <functional>

#include "train/memory_ranks.hpp"
#include "train/preflight.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

using schedule::RankSlots;
using schedule::Slots;

/// Whether the last two periods add the same slots.
bool is_periodic(const RankSlots& most, const RankSlots& fewer, const RankSlots& fewest) {
  if (most.accumulators != fewer.accumulators || most.weight_slots != fewer.weight_slots ||
      fewer.accumulators != fewest.accumulators || fewer.weight_slots != fewest.weight_slots)
    return false;
  for (std::size_t stage = 0; stage < most.of_stages.size(); ++stage)
    for (std::size_t pool = 0; pool < most.of_stages[stage].size(); ++pool)
      if (most.of_stages[stage][pool] - fewer.of_stages[stage][pool] !=
          fewer.of_stages[stage][pool] - fewest.of_stages[stage][pool])
        return false;
  return true;
}

/// Adds the slots of `periods` more periods to `most`. False: the slots are not periodic.
bool extend(std::vector<RankSlots>& most, const std::vector<RankSlots>& fewer, const std::vector<RankSlots>& fewest,
            int periods) {
  for (std::size_t rank = 0; rank < most.size(); ++rank) {
    if (!is_periodic(most[rank], fewer[rank], fewest[rank])) return false;
    std::vector<Slots>& slots = most[rank].of_stages;
    for (std::size_t stage = 0; stage < slots.size(); ++stage)
      for (std::size_t pool = 0; pool < slots[stage].size(); ++pool)
        slots[stage][pool] += periods * (slots[stage][pool] - fewer[rank].of_stages[stage][pool]);
  }
  return true;
}

/// Whether the programs of a rank have these slots.
bool has_slots(const train::Programs& programs, const train::ProgramSlots& slots, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return programs.training[at].rank_slots() == slots.training[at] &&
         programs.evaluation[at].rank_slots() == slots.evaluation[at];
}

/// The ranks with the largest bounds first; those with equal ones, and without bounds, as they are.
std::vector<int> by_bounds(std::vector<int> ranks, std::span<const double> bounds) {
  if (!bounds.empty())
    std::ranges::stable_sort(ranks, std::ranges::greater(),
                             [&](int rank) { return bounds[static_cast<std::size_t>(rank)]; });
  return ranks;
}

/// The value of `key`, from `make()` if it is new. What throws leaves no entry.
template <class Map, class Make>
const typename Map::mapped_type& kept(Map& map, const typename Map::key_type& key, Make make) {
  if (const auto found = map.find(key); found != map.end()) return found->second;
  typename Map::mapped_type made = make();
  return map.emplace(key, std::move(made)).first->second;
}

} // namespace

/// The input of the dry runs of a plan.
struct PlanMemory::PlannedRun {
  config::RunConfig run;
  Layout layout;
  train::Placement placement;
  PipelineShape shape;
  int schedule = 0;
};

const train::StepRows& PlanMemory::rows(int schedule, const PipelineShape& shape) {
  return kept(rows_, key_of(schedule, shape),
              [&] { return train::StepRows(schedules_.schedule(schedule, shape), shape); });
}

/// With the programs of a rank, and those of other ranks that are lowered already. What communicators guarantee
/// (Programs::assumptions) decides on streams, not on memory. Plans with all values of memory.recompute share programs
/// without R, which changes no slot: B and I then recompute everything, in the same memory.
const train::Programs& PlanMemory::lowered(const PlannedRun& planned, int rank, const PipelineShape& shape) {
  const ProgramsKey key = key_of(planned.run, planned.schedule, shape);
  kept(lowered_, key, [&] {
    return train::empty_programs(planned.run, planned.layout,
                                 train::RankPlugins(planned.run, planned.layout, 0, 1, log_));
  });
  train::Programs& out = lowered_.at(key);
  if (out.training[static_cast<std::size_t>(rank)].actions().empty())
    train::lower_rank(planned.run, rows(planned.schedule, shape), rank, out);
  return out;
}

train::ProgramSlots PlanMemory::counted(const PlannedRun& planned, const PipelineShape& shape) {
  return train::count_slots(planned.run, rows(planned.schedule, shape));
}

/// Plans differ in their microbatches more often than in these less whole periods.
PlanMemory::PlannedSlots PlanMemory::extended(const PlannedRun& planned) {
  const cost::CutShapes cut = schedules_.cut(planned.schedule, planned.shape);
  PlannedSlots out{cut.longer, counted(planned, cut.longer)};
  if (cut.periods == 0) return out;
  const train::ProgramSlots fewer = counted(planned, cut.shorter), fewest = counted(planned, cut.shortest);
  if (extend(out.slots.training, fewer.training, fewest.training, cut.periods) &&
      extend(out.slots.evaluation, fewer.evaluation, fewest.evaluation, cut.periods))
    return out;
  return {planned.shape, counted(planned, planned.shape)};
}

const PlanMemory::PlannedSlots& PlanMemory::slots_of(const PlannedRun& planned) {
  return kept(slots_, key_of(planned.run, planned.schedule, planned.shape), [&] { return extended(planned); });
}

const std::vector<int>& PlanMemory::ranks_of(const PlannedRun& planned, const PlannedSlots& slots) {
  const Split& split = planned.run.parallel.split;
  return kept(ranks_, {key_of(planned.run, planned.schedule, planned.shape), split}, [&] {
    return train::ranks_of_most_memory(
        slots.slots, rows(planned.schedule, slots.shape).training.stage_map,
        executor::split_layers(layers_.plugins(1).model(), planned.shape.stages(), split), layers_.kinds());
  });
}

/// The memory of a rank under its programs of `shape`, with other slots unless they are null.
PlanMemory::Answer PlanMemory::plan_rank(const PlannedRun& planned, int rank, const PipelineShape& shape,
                                         const train::ProgramSlots* slots) {
  const train::Programs& all = lowered(planned, rank, shape);
  train::Programs one{std::vector<schedule::Program>(all.training.size()),
                      std::vector<schedule::Program>(all.evaluation.size()), all.assumptions};
  const auto at = static_cast<std::size_t>(rank);
  one.training[at] = slots ? all.training[at].with_slots(slots->training[at].of_stages) : all.training[at];
  one.evaluation[at] = slots ? all.evaluation[at].with_slots(slots->evaluation[at].of_stages) : all.evaluation[at];
  train::Preflight checked = train::plan_under(planned.run, planned.placement, log_, one, std::span(&rank, 1));
  Answer out{0, std::move(checked.refusals)};
  for (const train::RankPlan& of : checked.plans) out.bytes = std::max(out.bytes, of.bytes());
  return out;
}

/// The programs of the longer cut need no more than those of all microbatches, so the first rank may be refused before
/// the slots of all ranks are known.
PlanMemory::Answer PlanMemory::of(const TrainingPlan& plan, const Split& split, std::span<const double> bounds,
                                  std::uint64_t limit) {
  const config::RunConfig run = run_of(request_, plan, split);
  const PlannedRun planned{run, train::layout_of(run), acceptance_.placement(plan), train::pipeline_shape(run),
                           plan.schedule};
  const PipelineShape first_shape = schedules_.cut(plan.schedule, planned.shape).longer;
  const auto first = bounds.empty() ? 0 : static_cast<int>(std::ranges::max_element(bounds) - bounds.begin());
  Answer out = plan_rank(planned, first, first_shape, nullptr);
  if (!out.refusals.empty() || out.bytes > limit) return out;
  const PlannedSlots& slots = slots_of(planned);
  const bool is_first_planned = has_slots(lowered(planned, first, first_shape), slots.slots, first);
  if (!is_first_planned) out.bytes = 0;
  for (const int rank : by_bounds(ranks_of(planned, slots), bounds)) {
    if (rank == first && is_first_planned) continue;
    Answer of_rank = plan_rank(planned, rank, slots.shape, &slots.slots);
    if (!of_rank.refusals.empty()) return of_rank;
    out.bytes = std::max(out.bytes, of_rank.bytes);
    if (out.bytes > limit) break;
  }
  return out;
}

} // namespace triax::plan
