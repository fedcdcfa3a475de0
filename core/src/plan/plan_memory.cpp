// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_memory.hpp"

#include <algorithm>
#include <span>

#include "train/preflight.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

using schedule::Program;
using schedule::Slots;

/// The slots of a program's stages.
std::vector<Slots> slots_of(const Program& program) {
  std::vector<Slots> out;
  for (const int stage : program.stages()) {
    Slots& slots = out.emplace_back();
    for (int pool = 0; pool < schedule::kPools; ++pool)
      slots[static_cast<std::size_t>(pool)] = program.slots(stage, static_cast<schedule::Pool>(pool));
  }
  return out;
}

/// Whether the last two periods add the same slots.
bool is_periodic(const Program& longer, const Program& shorter, const Program& shortest) {
  const std::vector<Slots> most = slots_of(longer), fewer = slots_of(shorter), fewest = slots_of(shortest);
  if (longer.accumulators() != shorter.accumulators() || longer.weight_slots() != shorter.weight_slots()) return false;
  for (std::size_t stage = 0; stage < most.size(); ++stage)
    for (std::size_t pool = 0; pool < most[stage].size(); ++pool)
      if (most[stage][pool] - fewer[stage][pool] != fewer[stage][pool] - fewest[stage][pool]) return false;
  return true;
}

bool are_periodic(const std::vector<Program>& longer, const std::vector<Program>& shorter,
                  const std::vector<Program>& shortest) {
  for (std::size_t rank = 0; rank < longer.size(); ++rank)
    if (!is_periodic(longer[rank], shorter[rank], shortest[rank])) return false;
  return true;
}

/// Gives `longer` the slots that it has after more periods, if each adds what `longer` has more than `shorter`.
void extend(Program& longer, const Program& shorter, int periods) {
  std::vector<Slots> slots = slots_of(longer);
  const std::vector<Slots> fewer = slots_of(shorter);
  if (slots == fewer) return;
  for (std::size_t stage = 0; stage < slots.size(); ++stage)
    for (std::size_t pool = 0; pool < slots[stage].size(); ++pool)
      slots[stage][pool] += periods * (slots[stage][pool] - fewer[stage][pool]);
  const auto actions = longer.actions();
  longer = Program(longer.stage_map(), longer.rank(), std::move(slots), {actions.begin(), actions.end()},
                   longer.posts(), longer.boundaries(), longer.sharding());
}

/// What the memory of a pipeline rank depends on. All ranks between the first and the last stage have blocks only, so
/// more layers and more slots need more memory.
struct RankNeeds {
  bool has_end = false;     // the first or the last stage
  std::vector<int> numbers; // layers and slots of its stages
  bool covers(const RankNeeds& other) const {
    if (has_end || other.has_end || numbers.size() != other.numbers.size()) return false;
    return std::ranges::equal(numbers, other.numbers, std::ranges::greater_equal());
  }
};

RankNeeds needs_of(const Program& training, const Program& evaluation, const StageMapping& mapping) {
  RankNeeds out;
  const int last = training.stage_map().stages() - 1;
  for (const int stage : training.stages()) {
    out.has_end |= stage == 0 || stage == last;
    out.numbers.push_back(mapping.split[static_cast<std::size_t>(stage)].count);
  }
  for (const Program* const program : {&training, &evaluation}) {
    for (const Slots& slots : slots_of(*program)) out.numbers.insert(out.numbers.end(), slots.begin(), slots.end());
    out.numbers.push_back(program->accumulators());
    out.numbers.push_back(program->weight_slots());
  }
  return out;
}

} // namespace

const train::Programs& PlanMemory::programs_of(const config::RunConfig& run, const Layout& layout, int schedule,
                                               const PipelineShape& shape) {
  const ProgramsKey key{schedule,           shape.pipeline,         shape.chunks,
                        shape.microbatches, train::boundaries(run), train::sharding(run)};
  std::unique_ptr<train::Programs>& out = programs_[key];
  if (out) return *out;
  const train::RankPlugins plugins(run, layout, 0, 1, log_);
  const auto lowered = [&](const PipelineShape& of) {
    config::RunConfig cut = run;
    cut.batch.global = of.microbatches * run.batch.micro * run.parallel.data;
    return train::lower_programs(cut, layout, plugins, schedules_.schedule(schedule, of));
  };
  const cost::CutShapes cut = schedules_.cut(schedule, shape);
  train::Programs longer = lowered(cut.longer);
  if (cut.periods > 0) {
    const train::Programs shorter = lowered(cut.shorter), shortest = lowered(cut.shortest);
    if (!are_periodic(longer.training, shorter.training, shortest.training) ||
        !are_periodic(longer.evaluation, shorter.evaluation, shortest.evaluation)) {
      out = std::make_unique<train::Programs>(lowered(shape));
      return *out;
    }
    for (std::size_t rank = 0; rank < longer.training.size(); ++rank) {
      extend(longer.training[rank], shorter.training[rank], cut.periods);
      extend(longer.evaluation[rank], shorter.evaluation[rank], cut.periods);
    }
  }
  out = std::make_unique<train::Programs>(std::move(longer));
  return *out;
}

/// The pipeline ranks that no other covers.
std::vector<int> PlanMemory::candidates(const train::Programs& programs, const StageMapping& mapping) const {
  std::vector<RankNeeds> needs;
  for (std::size_t rank = 0; rank < programs.training.size(); ++rank)
    needs.push_back(needs_of(programs.training[rank], programs.evaluation[rank], mapping));
  std::vector<int> out;
  for (std::size_t rank = 0; rank < needs.size(); ++rank) {
    bool is_covered = false;
    for (std::size_t other = 0; other < needs.size() && !is_covered; ++other)
      is_covered =
          other != rank && needs[other].covers(needs[rank]) && (other < rank || !needs[rank].covers(needs[other]));
    if (!is_covered) out.push_back(static_cast<int>(rank));
  }
  return out;
}

std::optional<std::uint64_t> PlanMemory::bytes(const TrainingPlan& plan, std::uint64_t limit) {
  const config::RunConfig run = run_of(request_, plan);
  const Layout layout = train::layout_of(run);
  const PipelineShape shape = train::pipeline_shape(run);
  const train::Programs& programs = programs_of(run, layout, plan.schedule, shape);
  const std::vector<int> ranks = candidates(programs, schedules_.mapping(plan.schedule, shape));
  train::Placement placement = placement_;
  placement.ranks = layout.world();
  std::uint64_t out = 0;
  for (const int rank : ranks) {
    const train::Preflight planned = train::plan_under(run, placement, log_, programs, std::span(&rank, 1));
    if (!planned.refusals.empty()) return std::nullopt;
    for (const train::RankPlan& of : planned.plans) out = std::max(out, of.bytes());
    if (out > limit) break;
  }
  return out;
}

} // namespace triax::plan
