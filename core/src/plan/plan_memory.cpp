// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_memory.hpp"

#include <algorithm>
#include <span>

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

/// Gives `programs` the slots that they have after `periods` more than `most`. False: the slots are not periodic.
bool extend(std::vector<schedule::Program>& programs, const std::vector<RankSlots>& most,
            const std::vector<RankSlots>& fewer, int periods) {
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    if (!is_periodic(most[rank], fewer[rank], programs[rank].rank_slots())) return false;
    std::vector<Slots> slots = most[rank].of_stages;
    for (std::size_t stage = 0; stage < slots.size(); ++stage)
      for (std::size_t pool = 0; pool < slots[stage].size(); ++pool)
        slots[stage][pool] += periods * (slots[stage][pool] - fewer[rank].of_stages[stage][pool]);
    programs[rank] = programs[rank].with_slots(std::move(slots));
  }
  return true;
}

/// A run with the microbatches of another shape.
config::RunConfig of_shape(const config::RunConfig& run, const PipelineShape& shape) {
  config::RunConfig out = run;
  out.batch.global = shape.microbatches * run.batch.micro * run.parallel.data;
  return out;
}

/// The value of `key`, from `make()` if it is new. What throws leaves no entry.
template <class Map, class Make>
const typename Map::mapped_type& kept(Map& map, const typename Map::key_type& key, Make make) {
  if (const auto found = map.find(key); found != map.end()) return found->second;
  typename Map::mapped_type made = make();
  return map.emplace(key, std::move(made)).first->second;
}

} // namespace

PlanMemory::ProgramsKey PlanMemory::key_of(const config::RunConfig& run, int schedule, const PipelineShape& shape) {
  return {schedule, shape.pipeline, shape.chunks, shape.microbatches, train::boundaries(run), train::sharding(run)};
}

/// Plans differ in their microbatches more often than in these less whole periods. What communicators guarantee
/// (Programs::assumptions) decides on streams, not on memory. Plans with all values of memory.recompute share programs
/// without R, which changes no slot: B and I then recompute everything, in the same memory.
const train::Programs& PlanMemory::lowered(const config::RunConfig& run, const Layout& layout, int schedule,
                                           const PipelineShape& shape) {
  return kept(lowered_, key_of(run, schedule, shape), [&] {
    const train::RankPlugins plugins(run, layout, 0, 1, log_);
    config::RunConfig keeps_all = of_shape(run, shape);
    keeps_all.memory.recompute = {"none"};
    return train::lower_programs(keeps_all, layout, plugins, schedules_.schedule(schedule, shape));
  });
}

const train::ProgramSlots& PlanMemory::counted(const config::RunConfig& run, int schedule, const PipelineShape& shape) {
  return kept(counted_, key_of(run, schedule, shape),
              [&] { return train::count_slots(of_shape(run, shape), schedules_.schedule(schedule, shape)); });
}

train::Programs PlanMemory::extended(const config::RunConfig& run, const Layout& layout, int schedule,
                                     const PipelineShape& shape) {
  const cost::CutShapes cut = schedules_.cut(schedule, shape);
  if (cut.periods == 0) return lowered(run, layout, schedule, shape);
  train::Programs out = lowered(run, layout, schedule, cut.shortest);
  const train::ProgramSlots& most = counted(run, schedule, cut.longer);
  const train::ProgramSlots& fewer = counted(run, schedule, cut.shorter);
  if (extend(out.training, most.training, fewer.training, cut.periods) &&
      extend(out.evaluation, most.evaluation, fewer.evaluation, cut.periods))
    return out;
  return lowered(run, layout, schedule, shape);
}

const PlanMemory::PlannedPrograms& PlanMemory::programs_of(const config::RunConfig& run, const Layout& layout,
                                                           int schedule) {
  const PipelineShape shape = train::pipeline_shape(run);
  return kept(planned_, {key_of(run, schedule, shape), run.parallel.split}, [&] {
    const Model& model = layers_.plugins(1).model();
    PlannedPrograms out;
    out.programs = extended(run, layout, schedule, shape);
    out.ranks = train::ranks_of_most_memory(
        out.programs, executor::split_layers(model, shape.stages(), run.parallel.split), layers_.kinds());
    return out;
  });
}

PlanMemory::Answer PlanMemory::of(const TrainingPlan& plan, const Split& split, std::uint64_t limit) {
  const config::RunConfig run = run_of(request_, plan, split);
  const Layout layout = train::layout_of(run);
  const PlannedPrograms& planned = programs_of(run, layout, plan.schedule);
  const train::Placement placement = acceptance_.placement(plan);
  Answer out;
  for (const int rank : planned.ranks) {
    train::Preflight checked = train::plan_under(run, placement, log_, planned.programs, std::span(&rank, 1));
    if (!checked.refusals.empty()) return {0, std::move(checked.refusals)};
    for (const train::RankPlan& of : checked.plans) out.bytes = std::max(out.bytes, of.bytes());
    if (out.bytes > limit) break;
  }
  return out;
}

} // namespace triax::plan
