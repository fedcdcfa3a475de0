// SPDX-License-Identifier: Apache-2.0
#include "plan/stage_classes.hpp"

#include <algorithm>
#include <cstddef>

namespace triax::plan {

namespace {

StageClasses::Stage describe(std::span<const int> kinds, const executor::StageLayers& of,
                             const executor::LayerRange& blocks, std::size_t all_kinds) {
  StageClasses::Stage out;
  out.blocks.resize(all_kinds);
  out.others.resize(all_kinds);
  for (int number = of.first; number < of.first + of.count; ++number) {
    const int kind = kinds[static_cast<std::size_t>(number)];
    ++(blocks.has(number) ? out.blocks : out.others)[static_cast<std::size_t>(kind)];
    if (blocks.has(number) && out.first_block < 0) out.first_block = kind;
  }
  return out;
}

/// Whether the layers of two stages have the same kinds, and the same ones can be repeated, in the same order: then the
/// stages have one class, which need not be described again.
bool has_same_layers(std::span<const int> kinds, const executor::StageLayers& one, const executor::StageLayers& other,
                     const executor::LayerRange& blocks) {
  if (one.count != other.count) return false;
  for (int at = 0; at < one.count; ++at) {
    const int a = one.first + at, b = other.first + at;
    if (kinds[static_cast<std::size_t>(a)] != kinds[static_cast<std::size_t>(b)] || blocks.has(a) != blocks.has(b))
      return false;
  }
  return true;
}

/// The number of an equal element, which is added if there is none.
int number_in(std::vector<StageClasses::Stage>& classes, StageClasses::Stage&& stage) {
  const auto found = std::ranges::find(classes, stage);
  const auto number = static_cast<int>(found - classes.begin());
  if (found == classes.end()) classes.push_back(std::move(stage));
  return number;
}

std::size_t stage_of(std::span<const executor::StageLayers> layers, int layer) {
  std::size_t out = 0;
  while (layer >= layers[out].first + layers[out].count) ++out;
  return out;
}

} // namespace

StageClasses classes_of(const Model& model, std::span<const int> kinds, std::span<const executor::StageLayers> layers,
                        const StageMapping& mapping) {
  StageClasses out;
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  const auto all_kinds = static_cast<std::size_t>(*std::ranges::max_element(kinds)) + 1;
  std::vector<int> class_of;
  std::vector<StageClasses::Rank> ranks(mapping.first_stage.size());
  std::vector<std::size_t> position; // number of each stage among the stages of its rank
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const int same = at > 0 && has_same_layers(kinds, layers[at - 1], layers[at], blocks) ? class_of.back() : -1;
    class_of.push_back(same >= 0 ? same : number_in(out.stages, describe(kinds, layers[at], blocks, all_kinds)));
    std::vector<int>& stages = ranks[static_cast<std::size_t>(mapping.stage_rank[at])].stages;
    position.push_back(stages.size());
    stages.push_back(class_of.back());
  }
  const std::span<const Tie> ties = model.ties();
  for (std::size_t tie = 0; tie < ties.size(); ++tie) {
    const std::size_t a = stage_of(layers, ties[tie].layer_a), b = stage_of(layers, ties[tie].layer_b);
    out.ties.push_back({mapping.stage_rank[a], mapping.stage_rank[b]});
    if (out.ties.back().a == out.ties.back().b)
      ranks[static_cast<std::size_t>(out.ties.back().a)].tied.push_back({tie, position[b]});
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    StageClasses::Rank& of = ranks[rank];
    of.lowest = mapping.first_stage[rank];
    const auto same = std::ranges::find_if(
        out.ranks, [&of](const auto& other) { return other.stages == of.stages && other.tied == of.tied; });
    if (same == out.ranks.end())
      out.ranks.push_back(std::move(of));
    else
      same->lowest = std::max(same->lowest, of.lowest);
  }
  for (StageClasses::Rank& of : out.ranks) {
    of.before.resize(out.stages.size());
    for (int stage = 0; stage < of.lowest; ++stage)
      ++of.before[static_cast<std::size_t>(class_of[static_cast<std::size_t>(stage)])];
  }
  return out;
}

} // namespace triax::plan
