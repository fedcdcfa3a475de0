// SPDX-License-Identifier: Apache-2.0
#include "train/memory_ranks.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <typeinfo>

#include "triax/cheap_recompute.hpp"
#include "triax/rank_activity.hpp"
#include "triax/recompute_steps.hpp"
#include "triax/text.hpp"

namespace triax::train {

namespace {

template <class Spec>
std::string shape_of(const Spec& spec) {
  return text("{}:{}:{}:{};", spec.name, static_cast<int>(spec.dtype), static_cast<int>(spec.life),
              to_text(spec.shape));
}

std::string shapes_of(std::span<const StashSpec> specs) {
  std::string out;
  for (const StashSpec& spec : specs) out += shape_of(spec);
  return out;
}

/// A tensor that is kept is divided over tensor ranks unless it is sharded.
std::string shapes_of(std::span<const TensorSpec> specs) {
  std::string out;
  for (const TensorSpec& spec : specs) out += text("{}{}", spec.sharded ? "sharded " : "", shape_of(spec));
  return out;
}

/// With the axes whose ranks exchange it, which decide its bucket and the part that a rank owns.
std::string description(const ParamSpec& spec) {
  std::string out = text("{}:{}", spec.name, spec.local.elements());
  for (const Cut& cut : spec.cuts) out += text(" {}/{}", cut.dim, cut.axis);
  for (const std::string& axis : spec.partial) out += " +" + axis;
  return out + ";";
}

/// The tensors that memory.recompute = "cheap" does not keep; a layer without the interface differs from one that lists
/// none.
std::string recomputed_of(Layer& layer) {
  const auto* const cheap = find_extension<CheapRecompute>(layer);
  if (!cheap) return {};
  std::string out = "recompute";
  call_plugin("recomputed_stash", typeid(layer), [&] {
    for (const int index : cheap->recomputed_stash()) out += text(" {}", index);
  });
  return out + ";";
}

/// The steps from which memory.recompute = "optimal" chooses: blocks of a kind have one choice of numbers.
std::string steps_of(Layer& layer) {
  const auto* const offered = find_extension<RecomputeSteps>(layer);
  if (!offered) return {};
  std::string out = "steps";
  call_plugin("steps", typeid(layer), [&] {
    for (const RecomputeStep& step : offered->steps()) {
      out += text(" {}:", step.name);
      for (const int index : step.writes) out += text(" {}", index);
      out += " from";
      for (const int index : step.reads) out += text(" {}", index);
    }
  });
  return out + ";";
}

/// All but the name of the layer.
std::string description(Layer& layer) {
  const Cost cost = layer.cost();
  std::string out = text("{} {} {} ", cost.forward, cost.backward_input, cost.backward_weight);
  for (const ParamSpec& spec : layer.params()) out += description(spec);
  return out + shapes_of(layer.stash()) + shapes_of(layer.inputs()) + shapes_of(layer.outputs()) +
         recomputed_of(layer) + steps_of(layer);
}

/// The settings on which the memory of a pipeline rank depends.
struct RankNeeds {
  struct Stage {
    std::map<int, int> layers;             // number by kind
    std::vector<schedule::Slots> of_pools; // slots of the training program, then of the evaluation's
    std::string recompute;
    std::int64_t group = 1;
    std::vector<executor::ChosenSteps> chosen;
    bool covers(const Stage& other) const {
      const auto has = [this](const auto& of) {
        const auto found = layers.find(of.first);
        return found != layers.end() && found->second >= of.second;
      };
      return recompute == other.recompute && group == other.group && chosen == other.chosen &&
             std::ranges::all_of(other.layers, has) &&
             std::ranges::equal(of_pools, other.of_pools, [](const schedule::Slots& most, const schedule::Slots& less) {
               return std::ranges::equal(most, less, std::ranges::greater_equal());
             });
    }
  };

  bool has_end = false; // the first or the last stage
  std::vector<Stage> stages;
  std::vector<int> shared; // slots that all stages share

  bool covers(const RankNeeds& other) const {
    if (has_end || other.has_end) return false;
    return std::ranges::equal(stages, other.stages, &Stage::covers) &&
           std::ranges::equal(shared, other.shared, std::ranges::greater_equal());
  }
};

/// The needs of a rank with these pools, without its recomputation.
RankNeeds needs_of(const ProgramSlots& slots, std::size_t rank, const schedule::StageMap& stage_map,
                   std::span<const executor::StageLayers> split, std::span<const int> kinds) {
  const schedule::RankSlots &training = slots.training[rank], &evaluation = slots.evaluation[rank];
  RankNeeds out;
  const int last = stage_map.stages() - 1;
  for (const int number : stage_map.stages_of(static_cast<int>(rank))) {
    out.has_end |= number == 0 || number == last;
    RankNeeds::Stage& stage = out.stages.emplace_back();
    const executor::StageLayers& of = split[static_cast<std::size_t>(number)];
    for (int layer = of.first; layer < of.first + of.count; ++layer)
      ++stage.layers[kinds[static_cast<std::size_t>(layer)]];
    const auto at = static_cast<std::size_t>(stage_map.number_on_rank(number));
    stage.of_pools = {training.of_stages[at], evaluation.of_stages[at]};
  }
  out.shared = {training.accumulators, training.weight_slots, evaluation.accumulators, evaluation.weight_slots};
  return out;
}

void add_recomputation(RankNeeds& needs, std::span<const int> stages, const Programs& programs,
                       const config::RunConfig::MemoryKeys& memory) {
  for (std::size_t at = 0; at < stages.size(); ++at) {
    const int number = stages[at];
    RankNeeds::Stage& stage = needs.stages[at];
    stage.recompute = memory.recompute.of(number);
    stage.group = memory.recompute_layers.of(number);
    if (programs.chosen.empty()) continue;
    for (const ChosenBlock& block : programs.chosen[static_cast<std::size_t>(number)])
      stage.chosen.push_back(block.steps);
  }
}

/// The ranks that no other covers.
std::vector<int> uncovered(const std::vector<RankNeeds>& needs) {
  std::vector<int> out;
  for (std::size_t rank = 0; rank < needs.size(); ++rank) {
    bool is_covered = false;
    // Equal ranks have one dry run: that of the first.
    for (std::size_t other = 0; other < needs.size() && !is_covered; ++other)
      is_covered =
          other != rank && needs[other].covers(needs[rank]) && (other < rank || !needs[rank].covers(needs[other]));
    if (!is_covered) out.push_back(static_cast<int>(rank));
  }
  return out;
}

} // namespace

std::vector<int> layer_kinds(const Model& model, const LayerContext& context) {
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(model.count()));
  std::map<std::string, int> known;
  for (int number = 0; number < model.count(); ++number)
    out.push_back(
        known.emplace(description(*model.layer(number, context)), static_cast<int>(known.size())).first->second);
  return out;
}

bool have_equal_layers(const Model& model, std::span<const executor::StageLayers> split, std::span<const int> stages,
                       const LayerContext& one, const LayerContext& other) {
  return std::ranges::all_of(stages, [&](int stage) {
    const executor::StageLayers& of = split[static_cast<std::size_t>(stage)];
    for (int layer = of.first; layer < of.first + of.count; ++layer)
      if (description(*model.layer(layer, one)) != description(*model.layer(layer, other))) return false;
    return true;
  });
}

std::vector<int> ranks_of_most_memory(const Programs& programs, std::span<const executor::StageLayers> split,
                                      std::span<const int> kinds, const config::RunConfig::MemoryKeys& memory) {
  ProgramSlots slots;
  for (const schedule::Program& program : programs.training) slots.training.push_back(program.rank_slots());
  for (const schedule::Program& program : programs.evaluation) slots.evaluation.push_back(program.rank_slots());
  std::vector<RankNeeds> needs;
  for (std::size_t rank = 0; rank < programs.training.size(); ++rank) {
    const schedule::Program& training = programs.training[rank];
    needs.push_back(needs_of(slots, rank, training.stage_map(), split, kinds));
    add_recomputation(needs.back(), training.stages(), programs, memory);
  }
  return uncovered(needs);
}

std::vector<int> ranks_of_most_memory(const ProgramSlots& slots, const schedule::StageMap& stage_map,
                                      std::span<const executor::StageLayers> split, std::span<const int> kinds) {
  std::vector<RankNeeds> needs;
  needs.reserve(slots.training.size());
  for (std::size_t rank = 0; rank < slots.training.size(); ++rank)
    needs.push_back(needs_of(slots, rank, stage_map, split, kinds));
  return uncovered(needs);
}

} // namespace triax::train
