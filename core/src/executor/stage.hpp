// SPDX-License-Identifier: Apache-2.0
// A stage: the layers of one model chunk, and the location of their tensors while they run.
//
// Threads: the rank's main thread. Ownership: owns its layers; views point into RankMemory; borrows neighbour stages on
// the same rank. Blocking: as the layers do: work is enqueued on the stream. Errors: ModelError if layers do
// not fit together.
//
// A recomputed layer keeps its inputs only. Its stash exists in F, and again in B or I, where the forward is repeated
// first; what W reads of it has a slot from I to W. Layers of a group keep the inputs of their first layer only: before
// the backward of the last one, the forwards of all are repeated, and their stashes exist at once. With partitioned
// activations, a rank keeps its part of these inputs, and gathers the whole ones over the tensor ranks first. With
// StageRecompute::on_host, they are in host memory, and InputOffload copies them. With Recompute::cheap, only the
// tensors that a layer lists are recomputed (CheapRecompute), and the others are kept. With Recompute::optimal, the
// chosen ones are, by the chosen steps of the layer (RecomputeSteps).
//
// R recomputes for the last layer or group of a stage, before the gradient of the stage has arrived. B or I, which is
// the next pass, begins with the backward of this group. It recomputes for the others, in the same memory, one after
// another. With split backwards, what W reads and R computes has its slot from R on.
//
// A tensor that outlives one call has a slot of a pool (schedule/rules.hpp), one slot per microbatch in flight. Layers
// get views of the tensors that exist during the current action. Other views are empty, so that reading an undeclared
// tensor fails. In a whole backward, a layer's W directly follows its I. Gradients between layers alternate between two
// buffers.
//
// A generating stage runs forwards only: all tensors of a layer live within one call, but those of Life::sequence, of
// which each microbatch has one set for all calls.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/batches.hpp"
#include "executor/input_offload.hpp"
#include "executor/nonfinite_search.hpp"
#include "executor/parameters.hpp"
#include "executor/split.hpp"
#include "schedule/program.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/model.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::executor {

struct StageOptions {
  LayerRange recomputed{}; // numbers of the layers that recompute their stash, or with `cheap` some of it
  StageRecompute how{};    // how they recompute
  Purpose purpose = Purpose::train;
  int microbatches = 0; // microbatches of a stage that generates
};

class Stage {
 public:
  /// `first`: number of its first layer in the model.
  Stage(int index, int first, std::vector<std::unique_ptr<Layer>> layers, const StageOptions& options = {});
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  int index() const { return index_; }
  int first() const { return first_; }                                  // number of its first layer in the model
  int end() const { return first_ + static_cast<int>(layers_.size()); } // one past its last layer
  /// visit(number in the model, layer)
  template <class Visit>
  void for_each_layer(Visit visit) const {
    for (std::size_t at = 0; at < layers_.size(); ++at) visit(first_ + static_cast<int>(at), *layers_[at].layer);
  }

  // Its boundaries, to be set before assign_memory(). A neighbour on another rank is described by its layer at the
  // boundary.
  /// For the first stage: all inputs must come from the data.
  void begin_with_data();
  /// Connects the outputs of `before`, on this rank, to this stage's inputs.
  void follow(Stage& before);
  void receive_from(const Layer& producer);
  void send_to(const Layer& consumer);
  /// For the last stage: its only output must be the loss; of a generating stage, the logits.
  void end_with_result();

  /// From now on, R repeats the last group, or recomputes what the last layer does not keep, and B and I do not. Throws
  /// Error if the last layer recomputes nothing.
  void recompute_early();

  /// `slots`: the size of each pool. The parameters must already have their memory.
  void assign_memory(RankMemory& memory, const schedule::Slots& slots, const Parameters& parameters);

  /// The inputs that are kept on the host, after assign_memory(). Without groups if the stage keeps none there.
  HostedStage hosted_stage() const;
  /// Copies these inputs through `offload`, which is borrowed. Without it, as in a dry run, only the work on the
  /// compute stream is enqueued.
  void offload_inputs(InputOffload& offload) { offload_ = &offload; }

  /// Memory of its layers and boundaries, after assign_memory(), with the arena's alignment; without the inputs on the
  /// host.
  std::vector<ActivationPart> activation_parts() const;

  /// Sets the number of rows of a generating stage, before each call. Views have that many until the next call.
  void set_rows(std::int64_t rows) { rows_ = rows; }
  /// Runs the layers of an F, B, I, W or R. `call` has all fields that do not depend on the layer. `search` looks at
  /// what each layer has written.
  void run(const schedule::ProgramAction& action, const LayerCall& call, const MicrobatchViews& batch,
           NonfiniteSearch* search = nullptr);
  /// The tensors that a SEND or RECV moves or a GATHER gathers: one per output of the layer before the boundary, in
  /// that order. Valid until the next call.
  Views boundary(const schedule::ProgramAction& action);

 private:
  /// Location of a tensor.
  struct Location {
    enum class Where : std::uint8_t { tokens, targets, pool, shared, sequence, part };
    Where where = Where::shared;
    schedule::Pool pool = schedule::Pool::stash_i;
    std::vector<TensorView> slots{};   // of the pool; `sequence`: by microbatch; `part`: what is kept, in `pool`
    std::vector<TensorView> arrived{}; // `part`: the whole input of the stage until F, in Pool::input_f; or `shared`
    TensorView shared{};               // valid within one call, in a reused block
    TensorView repeated{};             // in B, I and R, of an input inside a group, or one of `part`; else empty
    std::array<TensorView, kHostCopyBuffers> leaving{}, arriving{}; // `part` on the host: buffers of the device
    bool recomputed = false; // whether a repeated forward, CheapRecompute or a step writes this stash
    bool input_only = false; // `shared` exists in B, I and R, not in F
    int row_dim = -1;        // dimension that set_rows() applies to
  };
  struct LayerSlot {
    std::unique_ptr<Layer> layer;
    bool recomputes = false; // its whole stash
    bool begins_group = false, ends_group = false;
    std::size_t group = 0;             // with `begins_group`: its number in the stage
    CheapRecompute* cheap = nullptr;   // with Recompute::cheap, of a block
    RecomputeSteps* offered = nullptr; // with Recompute::optimal, of a block
    std::vector<int> steps;            // of those, the chosen ones
    std::vector<int> recomputed_stash; // as the layer listed them once, or as they are chosen
    std::vector<Location> in, stash;
    std::vector<int> consumer;                    // for each output: the input of the next layer, or -1: the loss
    std::vector<TensorView> input_gradients;      // if the previous layer is in this stage
    std::vector<std::vector<TensorView>> working; // by slot of Pool::weights; without this pool, one set
    std::vector<TensorView> accumulators;
  };
  using Slotted = std::vector<std::vector<TensorView>>; // by tensor of a boundary, and slot
  /// The views that a layer gets. assign_memory() reserves their memory, so that a step does not allocate.
  struct CallViews {
    std::vector<TensorView> in, out, dout, din, stash, boundary;
  };

  /// For each output of `producer`, the matching input of `consumer`. Throws Error if they do not match.
  static std::vector<int> join(const Layer& producer, const Layer& consumer);
  const Layer& first_layer() const { return *layers_.front().layer; }
  const Layer& last_layer() const { return *layers_.back().layer; }
  /// The output of the layer before the first boundary that is this input; -1: the input comes from the data.
  int arriving(std::size_t input) const;
  Location home_of_input(const TensorSpec& spec, std::size_t at) const;
  /// Whether an input has Where::part: the host keeps it, or this rank keeps its part only. The forward reads another
  /// memory.
  bool is_kept_apart(const TensorSpec& spec, std::size_t at) const;
  /// The tensor ranks that divide an input with Where::part.
  int parts_of(const TensorSpec& spec) const;
  void assign_part(LayerSlot& held, std::size_t input, RankMemory& memory, const schedule::Slots& slots) const;
  /// An input of the first layer, in the slot that the stage before fills.
  static const TensorView& input_slot(const Location& home, const schedule::Slots& slots);
  void group_layers();
  /// Sets `cheap` and `recomputed_stash`, after checks.
  static void list_recomputed(LayerSlot& held);
  /// Sets `offered`, `steps` and `recomputed_stash`, after checks.
  static void take_steps(LayerSlot& held, const ChosenSteps& chosen);
  /// The choice for the layer with this number of the model.
  const ChosenSteps& chosen_of(int number) const;
  bool generates() const { return options_.purpose == Purpose::generate; }
  void check_purpose(const Layer& layer) const;
  void assign_inputs(std::size_t at, RankMemory& memory, const schedule::Slots& slots);
  void assign_boundaries(RankMemory& memory, const schedule::Slots& slots);
  void assign_stash(LayerSlot& held, RankMemory& memory, const schedule::Slots& slots);
  void assign_group(std::size_t first, RankMemory& memory, const schedule::Slots& slots);
  static void assign_recomputed(LayerSlot& held, bool lasting, RankMemory& memory, const schedule::Slots& slots);
  /// A tensor that exists in F, and again from R, B or I.
  static Location recomputed_location(const StashSpec& spec, RankMemory& memory, const schedule::Slots& slots);
  void assign_generating_stash(LayerSlot& held, RankMemory& memory) const;

  /// With the rows of the call.
  TensorView of_call(const TensorView& largest, int row_dim) const;
  TensorView view(const Location& home, const schedule::ProgramAction& action, const MicrobatchViews& batch) const;
  static const TensorView& largest_view(const Location& home, const schedule::ProgramAction& action,
                                        const MicrobatchViews& batch);
  TensorView output(std::size_t at, std::size_t index, const schedule::ProgramAction& action,
                    const MicrobatchViews& batch) const;
  TensorView output_gradient(std::size_t at, std::size_t index, const schedule::ProgramAction& action) const;
  TensorView input_gradient(std::size_t at, std::size_t index, const schedule::ProgramAction& action) const;
  void collect(std::size_t at, const schedule::ProgramAction& action, const MicrobatchViews& batch);
  /// The weights that the layer reads in this action.
  static const std::vector<TensorView>& weights_of(const LayerSlot& held, const schedule::ProgramAction& action);
  void run_layer(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call);
  /// In F, copies what is kept of inputs with Where::part; in B, I and R, copies or gathers the inputs.
  /// @{
  void keep_parts(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call);
  void restore_inputs(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call);
  /// @}
  /// Repeats the forwards of the group whose last layer this is.
  void repeat_forwards(std::size_t last, const schedule::ProgramAction& action, const LayerCall& call,
                       const MicrobatchViews& batch);
  /// Whether something is recomputed before the backward of this layer: its group, or what it does not keep.
  bool recomputes_before(std::size_t at) const;
  void recompute_before(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call,
                        const MicrobatchViews& batch);
  /// With the views of the backward.
  void recompute_cheaply(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call);
  void run_steps(std::size_t at, const schedule::ProgramAction& action, const LayerCall& call);
  LayerResults results(std::size_t at, const schedule::ProgramAction& action) const;

  int index_, first_;
  StageOptions options_;
  std::int64_t rows_ = -1; // rows of the current call; -1: all rows of the tensors
  std::vector<LayerSlot> layers_;
  Stage* before_ = nullptr; // on this rank
  Stage* after_ = nullptr;
  InputOffload* offload_ = nullptr;
  bool sends_ = false, receives_ = false;
  bool recomputes_early_ = false;
  std::vector<int> arriving_; // for each output of the layer before: the matching input of the first layer
  Slotted output_gradients_;  // of the last layer, if there is a next stage
  Slotted sent_outputs_, sent_gradients_;
  CallViews call_views_;
};

} // namespace triax::executor
