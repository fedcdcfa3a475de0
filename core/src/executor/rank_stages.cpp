// SPDX-License-Identifier: Apache-2.0
// Creates the layers of a rank, and joins its stages.
#include "executor/rank_stages.hpp"

#include <algorithm>
#include <iterator>

#include "triax/error.hpp"

namespace triax::executor {

RankStages::RankStages(const Model& model, const LayerContext& context, std::span<const StageLayers> split,
                       const schedule::StageMap& stage_map, int rank, const StageOptions& options,
                       std::span<const StageRecompute> recompute, const ModelDescription* described) {
  for (int index = 0; index < stage_map.stages(); ++index) {
    const int of_stage = stage_map.rank_of(index);
    const StageLayers& of = split[static_cast<std::size_t>(index)];
    if (described && of_stage != rank) {
      for (int number = of.first; number < of.first + of.count; ++number)
        layers_.push_back({number, &described->layer(number), of_stage});
      continue;
    }
    std::vector<std::unique_ptr<Layer>> layers = make_layers(model, context, of);
    int number = of.first;
    for (const std::unique_ptr<Layer>& layer : layers) layers_.push_back({number++, layer.get(), of_stage});
    if (of_stage == rank) {
      StageOptions own = options;
      if (!recompute.empty()) own.how = recompute[static_cast<std::size_t>(index)];
      own.recomputed = recomputed_layers(model, own.how.blocks != Recompute::none);
      stages_.push_back(std::make_unique<Stage>(index, of.first, std::move(layers), own));
    } else {
      std::ranges::move(layers, std::back_inserter(elsewhere_));
    }
  }
  for (const std::unique_ptr<Stage>& stage : stages_) join(*stage, stage_map);
}

void RankStages::join(Stage& stage, const schedule::StageMap& stage_map) {
  const int index = stage.index();
  if (index == 0) stage.begin_with_data();
  if (stage_map.has(index, schedule::kBeforeHere)) stage.follow(at(index - 1));
  if (stage_map.has(index, schedule::kBeforeElsewhere)) stage.receive_from(description(stage.first() - 1));
  if (stage_map.has(index, schedule::kAfterElsewhere)) stage.send_to(description(stage.end()));
  if (index == stage_map.stages() - 1) stage.end_with_result();
}

Stage* RankStages::find(int index) const {
  const auto found = std::ranges::find_if(stages_, [index](const auto& stage) { return stage->index() == index; });
  return found == stages_.end() ? nullptr : found->get();
}

Stage& RankStages::at(int index) const {
  Stage* found = find(index);
  TRIAX_REQUIRE(found, "stage {} is not on this rank", index);
  return *found;
}

BatchInputs RankStages::inputs() const {
  BatchInputs out{false, false};
  for (const std::unique_ptr<Stage>& stage : stages_)
    stage->for_each_layer([&out](int, const Layer& layer) {
      for (const TensorSpec& input : layer.inputs()) {
        out.tokens |= input.name == "tokens";
        out.targets |= input.name == "targets";
      }
    });
  return out;
}

} // namespace triax::executor
