// SPDX-License-Identifier: Apache-2.0
// The layers of a whole model, for their descriptions, and its parameters. Pipeline ranks of one tensor rank have the
// same, so that the dry runs of all of them need one.
//
// Threads: any, it does not change. Ownership: owns the layers; model and layout must outlive it. Errors: those of the
// model's layers and of ModelParameters.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/model_parameters.hpp"
#include "executor/split.hpp"
#include "schedule/program.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// Creates the layers of a stage.
std::vector<std::unique_ptr<Layer>> make_layers(const Model& model, const LayerContext& context, const StageLayers& of);

class ModelDescription {
 public:
  /// `model`: the object of the first rank of the run. `split`: the layers of all stages.
  ModelDescription(const Model& model, const LayerContext& context, std::span<const StageLayers> split,
                   const schedule::StageMap& stage_map, const MemoryTypes& types, schedule::Sharding sharding);

  const Layer& layer(int number) const { return *layers_[static_cast<std::size_t>(number)]; }
  const std::shared_ptr<const ModelParameters>& parameters() const { return parameters_; }
  /// Throws ModelError if layer `number` of a pipeline rank has other parameters than its description.
  void check_parameters(int number, const Layer& layer) const;
  /// Throws ModelError if ranks describe ties differently: the rank of this description and that of `context`, which
  /// has the stages of `pipeline_rank` and its own `model` and so can differ. Creates the layers that those of the rank
  /// are tied to.
  void check_ties(const Model& model, const LayerContext& context,
                  std::span<const ModelParameters::NumberedLayer> layers, int pipeline_rank) const;
  /// The same for the rank of another description, which may hold other parts.
  void check_ties(const ModelDescription& other) const;

 private:
  std::string rank_, first_rank_; // Layout::describe()
  std::vector<Tie> ties_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::shared_ptr<const ModelParameters> parameters_;
};

} // namespace triax::executor
