// SPDX-License-Identifier: Apache-2.0
// The state that a rank keeps from step to step: stages, parameters, optimizer state, batches. It is constructed
// without memory, planned, and then allocated once.
//
// Threads: the rank's main thread. Ownership: owns all of it; borrows plugin objects, which must outlive it. Blocking:
// allocate() draws and copies the weights. Errors: Error if the model's layers do not fit together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/rank_plan.hpp"
#include "executor/split.hpp"
#include "executor/stage.hpp"
#include "executor/step_reductions.hpp"
#include "triax/optimizer.hpp"

namespace triax::executor {

struct RankRequest {
  const Model& model;
  const OptimizerTraits& optimizer;
  LayerContext context;
  MemoryTypes types;
  std::vector<StageLayers> split; // of all stages
  BatchShape batch;
};

class RankState {
 public:
  /// `training` determines the stages and slots of this rank; there are enough slots for `evaluation` too. Layers of
  /// other pipeline ranks are created as well, for their descriptions.
  RankState(const RankRequest& request, const schedule::Program& training, const schedule::Program& evaluation);

  /// Runs one action of each kind of each stage with a planning kernel set, device and communicators. Only before
  /// allocate().
  Plan plan(KernelSet& kernels, Optimizer& optimizer, const PlanRequest& request);

  /// Allocates, and draws the weights from `seed` on `threads` threads.
  void allocate(Device& device, Stream& stream, std::size_t scratch, std::uint64_t seed, int threads);
  /// Updates the working weights from the master weights.
  void refresh_working(Device& device, Stream& stream);

  Stage& stage(int index);
  Parameters& parameters() { return *parameters_; }
  const Parameters& parameters() const { return *parameters_; }
  /// The axes of the communicators that a rank needs: each of more than one rank, then products. The same list on all
  /// ranks.
  std::vector<std::vector<std::string>> communicator_axes(const Layout& layout) const;
  Batches& batches() { return batches_; }
  StepReductions& values() { return *values_; }
  /// All accumulators of the rank, flat, with the arena's padding between them. Empty if it has no parameters.
  TensorView gradients() const;
  std::span<std::byte> scratch() const { return memory_.scratch; }
  std::vector<std::span<std::byte>> blocks() const { return memory_.blocks(); }
  std::vector<std::string> layer_names() const;
  std::vector<RankMemory::Row> memory(std::size_t scratch_bytes) const { return memory_.rows(scratch_bytes); }
  std::span<const std::unique_ptr<Stage>> stages() const { return stages_; }
  /// Parts of the activations, largest first; their sum is the row "activations" of memory().
  std::vector<ActivationPart> activation_parts() const;

 private:
  void assign_memory(RankMemory& memory);
  void make_stages(const RankRequest& request);
  void join_stage(Stage& stage);
  Stage* find_stage(int index);
  /// Of any layer of the model, on any rank.
  const Layer& description(int number) const { return *all_layers_[static_cast<std::size_t>(number)].layer; }

  const schedule::Program& training_;
  const schedule::Program& evaluation_;
  DType master_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<Layer>> elsewhere_; // layers of other pipeline ranks: descriptions only
  std::vector<Parameters::NumberedLayer> all_layers_;
  std::unique_ptr<Parameters> parameters_;
  Batches batches_;
  std::unique_ptr<StepReductions> values_;
  RankMemory memory_;
};

} // namespace triax::executor
