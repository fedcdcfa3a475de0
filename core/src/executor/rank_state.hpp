// SPDX-License-Identifier: Apache-2.0
// The state that a rank keeps from step to step: stages, parameters, optimizer state, batches. It is constructed
// without memory, planned, and then allocated once.
//
// Threads: the rank's main thread. Ownership: owns all of it; borrows plugin objects, which must outlive it. Blocking:
// draw_weights() computes and copies the weights. Errors: Error if the model's layers do not fit together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/kept_state.hpp"
#include "executor/offloaded_state.hpp"
#include "executor/rank_plan.hpp"
#include "executor/rank_stages.hpp"
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
  std::vector<StageRecompute> recompute{}; // of each stage; empty: blocks keep their stash
  schedule::Sharding sharding = schedule::Sharding::none;
  OffloadRequest offload{}; // of the optimizer's state
  /// The model, described on any pipeline rank of this tensor rank. Null: the rank describes the layers of others
  /// itself.
  std::shared_ptr<const ModelDescription> described = nullptr;
};

/// The slots of the pools of a stage: enough for both programs.
schedule::Slots stage_slots(int stage, const schedule::Program& training, const schedule::Program& evaluation);

class RankState {
 public:
  /// `training` determines the stages and slots of this rank; there are enough slots for `evaluation` too. Both may be
  /// the same program, which has no backward. Unless the request describes the model, layers of other pipeline ranks
  /// are created as well.
  RankState(const RankRequest& request, const schedule::Program& training, const schedule::Program& evaluation);

  /// Runs one action of each kind of each stage as a dry run. Only before allocate().
  Plan plan(KernelSet& kernels, Optimizer& optimizer, const DryRunRequest& request);

  /// The device's memory holds zeros.
  void allocate(Device& device, Stream& stream, const ScratchBytes& scratch);
  /// Draws the weights from `seed` on `threads` threads, and starts to offload the optimizer's state. After allocate()
  /// and OffloadedState::open(). A rank that only evaluates has no memory for this: it loads the weights.
  void draw_weights(Device& device, Stream& stream, std::uint64_t seed, int threads);
  Stage& stage(int index) { return stages_.at(index); }
  Parameters& parameters() { return *parameters_; }
  const Parameters& parameters() const { return *parameters_; }
  /// The axes of the communicators that a rank needs: each of more than one rank, then products. The same list on all
  /// ranks.
  std::vector<std::vector<std::string>> communicator_axes(const Layout& layout) const;
  Batches& batches() { return batches_; }
  StepReductions& values() { return *values_; }
  const StepReductions& values() const { return *values_; }
  /// All accumulators of the rank but the shared ones, flat, with the arena's padding between them. Empty if there are
  /// none.
  TensorView gradients() const;
  /// The parameters that this rank updates: all, or those of a stage by call of the optimizer, which is one unless
  /// state is offloaded. Tied ones belong to the stage of their first layer on this rank. The views into `state` are
  /// valid until the memory is assigned anew.
  std::vector<ParameterShard> shards() const;
  std::vector<OptimizerCall> optimizer_calls(int stage) const;
  /// Null if the optimizer's state is in the memory of the device.
  OffloadedState* offloaded() const { return offloaded_.get(); }
  /// Between the device and its host: see OffloadedState.
  /// @{
  HostTraffic step_traffic() const { return offloaded_ ? offloaded_->step_traffic() : HostTraffic{}; }
  HostTraffic host_traffic() const { return offloaded_ ? offloaded_->traffic() : HostTraffic{}; }
  /// @}
  /// Master weights, then the optimizer's state, of each parameter on this rank; then the weights that layers read, if
  /// an update may be pending.
  std::vector<KeptTensor> kept() const;
  std::span<std::byte> scratch() const { return memory_.scratch; } // of operations
  std::span<std::byte> optimizer_scratch() const { return memory_.optimizer_scratch; }
  std::span<std::byte> host_scratch() const { return memory_.host_scratch; } // of operations on the host
  std::vector<std::span<std::byte>> blocks() const { return memory_.blocks(); }
  std::vector<std::string> layer_names() const;
  std::vector<RankMemory::Row> memory(const ScratchBytes& scratch) const { return memory_.rows(scratch); }
  /// That of the memory that is allocated.
  ScratchBytes scratch_bytes() const {
    return {scratch().size(), optimizer_scratch().size(), host_scratch().size(), memory_.hosts_state};
  }
  std::span<const std::unique_ptr<Stage>> stages() const { return stages_.all(); }
  /// Memory within the call of a layer: of the call that needs most.
  std::size_t transient_bytes() const { return memory_.transient.peak(); }
  /// Parts of the activations, largest first; their sum is the row "activations" of memory().
  std::vector<ActivationPart> activation_parts() const;

 private:
  std::shared_ptr<const ModelParameters> model_parameters(const RankRequest& request) const;
  void share_weights();
  void assign_memory(RankMemory& memory);
  void offload_state(const RankRequest& request);
  const TensorView& whole(const Parameter& parameter) const;
  /// `all`: drawn weights, on the device.
  void distribute(const Parameter& parameter, const TensorView& all, Device& device, Stream& stream) const;
  void write_master(std::size_t index, const TensorView& drawn) const;
  /// Whether ranks outside the parameter's group have the same elements, and one of them saves these.
  bool is_copy(const Parameter& parameter) const;

  const schedule::Program& training_;
  const schedule::Program& evaluation_;
  const Layout& layout_;
  const int rank_; // in the layout
  DType master_;
  std::vector<std::string> state_names_; // the optimizer's
  std::shared_ptr<const ModelDescription> described_;
  RankStages stages_;
  std::unique_ptr<Parameters> parameters_;
  Batches batches_;
  std::unique_ptr<StepReductions> values_;
  RankMemory memory_;
  std::unique_ptr<OffloadedState> offloaded_; // destroyed first: its thread uses the memory
};

} // namespace triax::executor
