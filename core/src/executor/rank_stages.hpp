// SPDX-License-Identifier: Apache-2.0
// The layers of a model on one rank: the stages of the rank, joined with each other, and the layers of other pipeline
// ranks, for their descriptions.
//
// Threads: the rank's main thread. Ownership: owns stages and layers; borrows the model and a
// description that it is given. Errors: Error if the model's
// layers do not fit together.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/model_description.hpp"
#include "executor/split.hpp"
#include "executor/stage.hpp"

namespace triax::executor {

class RankStages {
 public:
  /// `split`: the layers of all stages; `rank`: on the pipeline axis; `recompute`: of each stage, or empty;
  /// `described`: has the layers of other pipeline ranks, or null.
  RankStages(const Model& model, const LayerContext& context, std::span<const StageLayers> split,
             const schedule::StageMap& stage_map, int rank, const StageOptions& options,
             std::span<const StageRecompute> recompute = {}, const ModelDescription* described = nullptr);

  std::span<const std::unique_ptr<Stage>> all() const { return stages_; }
  Stage* find(int index) const; // null if the stage is on another rank
  Stage& at(int index) const;
  /// The layers of the whole model, in order.
  std::span<const ModelParameters::NumberedLayer> layers() const { return layers_; }
  /// Which data the layers of the rank read.
  BatchInputs inputs() const;

 private:
  void join(Stage& stage, const schedule::StageMap& stage_map);
  const Layer& description(int number) const { return *layers_[static_cast<std::size_t>(number)].layer; }

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<Layer>> elsewhere_; // unless they are described
  std::vector<ModelParameters::NumberedLayer> layers_;
};

} // namespace triax::executor
