// SPDX-License-Identifier: Apache-2.0
// A stage: the layers of one model chunk, and where each of their tensors is while they run.
//
// Threads: the rank's main thread. Ownership: owns its layers; views point into RankMemory; neighbour stages of the
// same rank are borrowed. Blocking: as the layers: work is put on the stream. Errors: Error where layers do not fit
// together.
//
// A tensor with a life beyond one call lives in a slot of a pool (schedule/rules.hpp), one slot per microbatch in
// flight. Layers are handed views of what is alive in the action at hand; for anything else the view is empty, so that
// reading what was not declared cannot pass unnoticed. Within a whole backward, a layer's I is followed by its W at
// once; gradients between layers take turns in two buffers.
#pragma once

#include <memory>
#include <vector>

#include "executor/batches.hpp"
#include "executor/parameters.hpp"
#include "schedule/program.hpp"
#include "triax/model.hpp"

namespace triax::executor {

class Stage {
 public:
  /// `first`: number of its first layer in the model.
  Stage(int index, int first, std::vector<std::unique_ptr<Layer>> layers);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  int index() const { return index_; }
  int first() const { return first_; }                                  // number of its first layer in the model
  int end() const { return first_ + static_cast<int>(layers_.size()); } // and of the first that is not its own
  /// visit(number in the model, layer)
  template <class Visit>
  void for_each_layer(Visit visit) const {
    for (std::size_t at = 0; at < layers_.size(); ++at) visit(first_ + static_cast<int>(at), *layers_[at].layer);
  }

  // How it begins and ends, before place(). Neighbours on another rank are described by their layer at the boundary.
  /// For the first stage: all its inputs must come from the data.
  void begin_with_data();
  /// Joins the outputs of `before`, on this rank, to this stage's inputs.
  void follow(Stage& before);
  void receive_from(const Layer& producer);
  void send_to(const Layer& consumer);
  /// For the last stage: its outputs must be the loss alone.
  void end_with_loss();

  /// `slots`: how many of each pool. The parameters must have been placed.
  void place(RankMemory& memory, const schedule::Slots& slots, const Parameters& parameters);

  /// What its layers and its boundaries keep, after place(); sizes are those of the arena.
  std::vector<ActivationPart> activation_parts() const;

  /// Runs the layers of an F, B, I or W. `call` has everything that does not depend on the layer.
  void run(const schedule::ProgramAction& action, const LayerCall& call, const MicrobatchViews& batch);
  /// What a SEND or RECV moves and a GATHER makes whole: a tensor for each output of the layer before the boundary, in
  /// their order. Valid until the next call.
  Views boundary(const schedule::ProgramAction& action);

 private:
  /// Where a tensor is.
  struct Home {
    enum class Where : std::uint8_t { tokens, targets, pool, shared };
    Where where = Where::shared;
    schedule::Pool pool = schedule::Pool::stash_i;
    std::vector<TensorView> slots; // of the pool
    TensorView shared;             // within one call, in a block that others use at other times
  };
  struct Held {
    std::unique_ptr<Layer> layer;
    std::vector<Home> in, stash;
    std::vector<int> consumer;               // for each output: the next layer's input that it is, or -1: the loss
    std::vector<TensorView> input_gradients; // where the layer before is in this stage
    std::vector<TensorView> working, accumulators;
  };
  using Slotted = std::vector<std::vector<TensorView>>; // by tensor of a boundary, and slot
  /// What a layer is handed; their room is made in place(), so that a step allocates nothing.
  struct Handed {
    std::vector<TensorView> in, out, dout, din, stash, boundary;
  };

  /// For each output of `producer`, the input of `consumer` that it is. Throws Error where they do not fit.
  static std::vector<int> join(const Layer& producer, const Layer& consumer);
  const Layer& first_layer() const { return *layers_.front().layer; }
  const Layer& last_layer() const { return *layers_.back().layer; }
  /// Which output of the layer before the first boundary an input is, or -1: of the data.
  int arriving(std::size_t input) const;
  static Home home_of_input(const TensorSpec& spec, bool first_of_stage);
  void place_inputs(std::size_t at, RankMemory& memory, const schedule::Slots& slots);
  void place_boundaries(RankMemory& memory, const schedule::Slots& slots);
  void place_stash(Held& held, RankMemory& memory, const schedule::Slots& slots);

  static TensorView view(const Home& home, const schedule::ProgramAction& action, const MicrobatchViews& batch);
  TensorView output(std::size_t at, std::size_t index, const schedule::ProgramAction& action,
                    const MicrobatchViews& batch) const;
  TensorView output_gradient(std::size_t at, std::size_t index, const schedule::ProgramAction& action) const;
  TensorView input_gradient(std::size_t at, std::size_t index, const schedule::ProgramAction& action) const;
  void collect(std::size_t at, const schedule::ProgramAction& action, const MicrobatchViews& batch);
  void run_layer(std::size_t at, schedule::Kind kind, const LayerCall& call);

  int index_, first_;
  std::vector<Held> layers_;
  Stage* before_ = nullptr; // on this rank
  Stage* after_ = nullptr;
  bool sends_ = false, receives_ = false;
  std::vector<int> arriving_; // for each output of the layer before: the first layer's input that it is
  Slotted output_gradients_;  // of the last layer, where there is a stage after
  Slotted sent_outputs_, sent_gradients_;
  Handed handed_;
};

} // namespace triax::executor
