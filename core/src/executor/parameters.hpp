// SPDX-License-Identifier: Apache-2.0
// The parameters of a rank: one storage per parameter, shared by tied ones, and one accumulator for every layer that
// adds to its gradient.
//
// Threads: the rank's main thread. Ownership: views into RankMemory; shares the ModelParameters. Errors: those of
// ModelParameters.
//
// A tied pair has two accumulators, even on one stage: schedules differ in the order in which microbatches reach the
// two layers. Two separate sums, added once at the end of the step, always give the same bits. A pair on two pipeline
// ranks is stored on both. Each rank receives the other's sum and adds the two in the same order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/model_parameters.hpp"
#include "executor/split.hpp"
#include "triax/optimizer.hpp"

namespace triax::executor {

struct Parameter {
  std::string name; // "block 3/attention.qkv.weight"
  const ParamSpec* spec = nullptr;
  /// The master weights: all, or if `holds_part` those of `owned`, flat.
  TensorView master;
  TensorView gradient;    // reduced and, of a tied parameter, added: all, or if `scattered` those of `owned`, flat
  TensorView accumulator; // what backwards of its first layer on this rank add to, until it is reduced
  /// The weights that layers read; the master if the types are equal. If `resharded`, those of `owned`, flat.
  TensorView working;
  /// The tensors that ranks of a tied parameter exchange and add, of its layers in the order of the model: the reduced
  /// gradients, or if `scattered` those of this rank's part with its padding, so that all data ranks send as much. The
  /// first contains `gradient`.
  std::vector<TensorView> exchanged;
  /// The pipeline ranks of `exchanged`. The gradient of another rank is a receive buffer.
  std::vector<int> ranks;
  /// The optimizer's, without padding: of all, or if `sharded` of `owned`. Without data if they are offloaded, as
  /// then separate master weights are.
  std::vector<TensorView> state;
  std::size_t reduction = 0; // how its buckets are reduced: index in Parameters::reductions()
  std::size_t global = 0;    // index in Parameters::global()
  OwnedPart owned;           // of this rank
  bool sharded = false;      // each rank updates the part that it owns
  bool holds_part = false;   // the rank stores master weights of its part only
  bool scattered = false;    // the rank stores reduced gradients of its part only
  bool resharded = false;    // working weights of other parts are stored only from UNSHARD to RESHARD
  std::int64_t part = 0;     // as Bucket::part
  int members = 1;           // as Bucket::members
  int layer = 0;             // number of its first layer on this rank
};

/// The accumulators of a stage, of layers [first, end), use this slot (Program::accumulator()).
struct StageAccumulator {
  int first = 0, end = 0, slot = 0;
};

/// The weights of a sharded bucket: what GATHER_PARAM gathers. They lie as the bucket's gradients do, and are padded to
/// equal parts.
struct GatheredWeights {
  std::string group;  // Group::axis
  TensorView working; // what layers read, flat; empty with Sharding::parameters
  TensorView part;    // this rank's part, in `working` or apart
  TensorView master;  // master weights of the part; the same if layers read the master weights
};

/// The same for UNSHARD.
struct UnshardedWeights {
  std::string group;
  TensorView part;
  std::vector<TensorView> whole; // by slot of Pool::weights
};

class Parameters {
 public:
  /// Those of pipeline rank `here`, with `states` tensors of the optimizer's state each.
  Parameters(std::shared_ptr<const ModelParameters> model, int here, std::size_t states);

  /// If the gradients are scattered: stages share the memory of accumulators, if that needs less than memory for each
  /// and the reduced gradients inside it.
  void share_accumulators(std::span<const StageAccumulator> stages);
  /// With Sharding::parameters: `slots` slots of memory for the whole weights of one of these stages of the rank.
  void share_weights(std::span<const StageLayers> stages, int slots);
  int weight_slots() const { return static_cast<int>(weight_slots_.size()); }
  /// These slots and the parts need less than whole weights of all stages.
  bool saves_weights() const { return saves_weights_; }
  bool shares_accumulators() const { return slot_elements_ > 0; }
  /// The shared memory that the layers of a stage accumulate in; empty if they have their own.
  TensorView shared_accumulator(int slot) const {
    return shares_accumulators() ? slots_.at(static_cast<std::size_t>(slot)) : TensorView{};
  }
  /// With which the arena of gradients begins.
  std::size_t shared_accumulator_bytes() const;

  /// The optimizer's state, and master weights that are separate from working weights, get no memory: see
  /// OffloadedState. Before assign_memory().
  void offload_state() { offloads_ = true; }
  bool offloads_master() const { return offloads_ && separate_working(); }
  /// For a program without backwards: accumulators get no memory. Before assign_memory().
  void leave_out_gradients() { has_gradients_ = false; }

  void assign_memory(RankMemory& memory);
  /// Weights only, without gradients and the optimizer's state.
  void assign_weights(RankMemory& memory);

  /// In the order of the model; a tied parameter is at the position of its first layer, whichever rank has that. Norms
  /// and optimizer steps use this order.
  std::vector<Parameter>& all() { return parameters_; }
  const std::vector<Parameter>& all() const { return parameters_; }
  /// The parameters of all pipeline ranks, in the order of the model; tied parameters once.
  const std::vector<GlobalParameter>& global() const { return model_->global(); }
  /// The largest size of all() of any pipeline rank.
  std::size_t most_on_a_rank() const { return model_->most_on_a_rank(); }
  int here() const { return here_; }
  /// The number of layers of the whole model.
  int layers() const { return static_cast<int>(model_->layers().size()); }
  /// The working weights that layer `number` reads, by slot of Pool::weights (without this pool, there is one set), and
  /// the accumulators of its gradients, in the order of its params().
  const std::vector<std::vector<TensorView>>& working_of(int number) const { return layer_parameters(number).working; }
  const std::vector<TensorView>& gradients_of(int number) const { return layer_parameters(number).gradients; }
  const std::vector<Bucket>& buckets_of(int number) const { return layer_parameters(number).buckets; }
  /// The gathered weights of the sharded buckets of a layer. A tied parameter is with its first layer on this rank.
  const std::vector<GatheredWeights>& gathered_of(int number) const { return layer_parameters(number).gathered; }
  /// Those of them whose weights its stage must gather. Empty without Sharding::parameters.
  const std::vector<UnshardedWeights>& unsharded_of(int number) const { return layer_parameters(number).unsharded; }
  /// The distinct reductions of the buckets of the model; the same list on all ranks.
  const std::vector<Reduction>& reductions() const { return model_->reductions(); }

  /// One per parameter whose first layer on this rank is one of these. The views into `state` are valid until the next
  /// assign_memory() or the end of this object.
  std::vector<ParameterShard> shards(int first_layer, int end_layer) const;
  bool separate_working() const { return types().compute != types().master; }

 private:
  using Accumulator = ModelParameters::Accumulator;
  /// The parameters of a layer of this rank, with views of its buckets and of what it reads and adds to.
  struct LayerParameters : ModelParameters::LayerParameters {
    std::vector<std::vector<TensorView>> working{};
    std::vector<TensorView> gradients{};
    std::vector<GatheredWeights> gathered{};
    std::vector<UnshardedWeights> unsharded{};
  };
  const LayerParameters& layer_parameters(int number) const;
  Parameter parameter_of(std::size_t index) const;
  const MemoryTypes& types() const { return model_->types(); }
  schedule::Sharding sharding() const { return model_->sharding(); }
  /// The elements of a parameter that this rank owns, in `part`, its part of the bucket.
  static TensorView owned_of(const Bucket& bucket, const Accumulator& accumulator, const Parameter& parameter,
                             const TensorView& part);
  void assign_sharded(LayerParameters& layer, std::size_t number, RankMemory& memory);
  void assign_unsharded(LayerParameters& layer);
  const TensorView& part_of_weights(const LayerParameters& layer, const Bucket& bucket) const;
  static TensorView whole_weights(const Bucket& bucket, const TensorView& slot);
  static TensorView view_of(const TensorView& bucket, const Accumulator& accumulator, const Shape& shape);
  /// The arena of what layers read.
  Arena& weights_of(RankMemory& memory) const { return separate_working() ? memory.working : memory.weights; }
  bool scatters(const Bucket& bucket) const { return bucket.sharded && schedule::scatters_gradients(sharding()); }
  void assign_gradients(RankMemory& memory);
  void assign_bucket(Bucket& bucket, RankMemory& memory) const;
  void assign_accumulators(LayerParameters& layer, RankMemory& memory);
  TensorView master_tensor(RankMemory& memory, const Shape& shape) const;
  TensorView state_tensor(RankMemory& memory, const Shape& shape) const;
  Parameter& local(std::size_t index) { return parameters_[model_->all()[index].index.at(here_)]; }

  std::shared_ptr<const ModelParameters> model_;
  int here_;
  std::size_t states_;
  std::vector<Parameter> parameters_;
  std::vector<LayerParameters> layers_; // of this rank
  std::int64_t slot_elements_ = 0;      // elements of a shared accumulator; 0: accumulators are not shared
  std::vector<TensorView> slots_;       // shared accumulators
  std::int64_t weight_slot_elements_ = 0;
  std::vector<TensorView> weight_slots_; // of Pool::weights
  bool saves_weights_ = false;
  bool offloads_ = false;
  bool has_gradients_ = true;
};

} // namespace triax::executor
