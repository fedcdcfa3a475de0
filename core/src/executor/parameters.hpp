// SPDX-License-Identifier: Apache-2.0
// The parameters of a rank: one storage per parameter, shared by tied ones, and one accumulator for every layer that
// adds to its gradient.
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Errors: ModelError for a tie with an unknown
// parameter or with different sizes, and for a description of a parameter that contradicts itself or the layout.
//
// A tied pair has two accumulators, even on one stage: schedules differ in the order in which microbatches reach the
// two layers. Two separate sums, added once at the end of the step, always give the same bits. A pair on two pipeline
// ranks is stored on both. Each rank receives the other's sum and adds the two in the same order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/memory.hpp"
#include "executor/split.hpp"
#include "schedule/rules.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"

namespace triax::executor {

/// The elements of a parameter that a rank owns, of its storage without padding, seen flat. The ranks of a bucket's
/// group hold the same weights and, once reduced, the same gradients. Each owns a part of the bucket: the elements
/// divided by the number of ranks, rounded up to 256 bytes, in the order of the group; the last parts may be shorter or
/// empty. It squares the gradients of its part for the norm, and is the one to save its state.
struct OwnedPart {
  std::int64_t first = 0, count = 0; // count 0: other ranks own all of the parameter
  bool operator==(const OwnedPart&) const = default;
};

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

/// Over which ranks gradients are added.
struct Reduction {
  std::vector<std::string> axes; // in the order of the layout; empty: none
  std::string group;             // their Group::axis
};

/// Accumulators of one layer that are reduced together: all whose gradients are added over the same axes. A tied
/// parameter has a separate bucket, so that a rank owns the same part of it on both sides of the tie.
struct Bucket {
  Reduction reduction;
  std::int64_t elements = 0; // of `gradients`
  TensorView gradients;      // contiguous, with padding between them
  bool tied = false;
  std::int64_t part = 0, begin = 0; // elements that each rank owns, and the first of this rank; the last have fewer
  int members = 1;                  // ranks
  bool sharded = false;             // each of them updates the part that it owns
  /// If the gradients are scattered: those of this rank's part, in `gradients` or apart. Else empty.
  TensorView reduced{};
  int slot = -1; // shared memory in which `gradients` lie from `offset` on; -1: they have their own
  std::int64_t offset = 0;
  TensorView weights{}; // if sharded and stored with this layer: of this rank's part, what layers read
  /// With Sharding::parameters: where the whole weights lie in a slot, and whether this bucket gathers them.
  std::int64_t weights_offset = 0;
  bool unshards = false;
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

/// A parameter of the whole model; the same list on all ranks.
struct GlobalParameter {
  std::string name;
  const ParamSpec* spec = nullptr;
  int rank = 0;              // pipeline rank of its first layer
  std::size_t index = 0;     // in that rank's Parameters::all()
  std::size_t reduction = 0; // as Parameter::reduction
};

struct MemoryTypes {
  DType compute = DType::f32, master = DType::f32;
};

class Parameters {
 public:
  /// A layer of the model, by number, and the pipeline rank that has it.
  struct NumberedLayer {
    int number = 0;
    const Layer* layer = nullptr;
    int rank = 0;
  };
  /// `layers`: the whole model in order; `rank`: this rank in the layout; `here`: its pipeline rank, whose parameters
  /// are stored. `sharding`: what the ranks of a bucket divide, if they differ in samples.
  Parameters(std::span<const NumberedLayer> layers, int rank, int here, const Layout& layout, std::span<const Tie> ties,
             const MemoryTypes& types, std::size_t states, schedule::Sharding sharding = schedule::Sharding::none);

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
  const std::vector<GlobalParameter>& global() const { return global_; }
  /// The largest size of all() of any pipeline rank.
  std::size_t most_on_a_rank() const;
  int here() const { return here_; }
  /// The number of layers of the whole model.
  int layers() const { return static_cast<int>(layers_.size()); }
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
  const std::vector<Reduction>& reductions() const { return reductions_; }

  /// One per parameter whose first layer on this rank is one of these. The views into `state` are valid until the next
  /// assign_memory() or the end of this object.
  std::vector<ParameterShard> shards(int first_layer, int end_layer) const;
  bool separate_working() const { return types_.compute != types_.master; }

 private:
  /// A parameter of the model, with all layers that are tied to it.
  struct ModelParameter {
    std::string name;
    const ParamSpec* spec = nullptr;
    std::size_t reduction = 0;
    std::vector<int> ranks{};           // of its layers, in the order of the model
    std::map<int, std::size_t> index{}; // index in all() of each rank that stores it
    std::map<int, int> layer{};         // number of its first layer on each of them
    OwnedPart owned{};
    bool sharded = false;
    std::int64_t part = 0;
    int members = 1;
  };
  /// An accumulator of a parameter: one per layer, in a bucket of that layer.
  struct Accumulator {
    std::size_t parameter = 0; // index in model_parameters_
    std::size_t number = 0;    // among the accumulators of the parameter
    std::size_t bucket = 0;    // number of its bucket in the layer
    std::int64_t offset = 0;   // in the bucket, in elements
  };
  /// The parameters of a layer, and their accumulators, buckets and views.
  struct LayerParameters {
    int number = 0, rank = 0;
    std::vector<const ParamSpec*> specs{};
    std::vector<Accumulator> accumulators{};
    std::vector<std::vector<TensorView>> working{};
    std::vector<TensorView> gradients{};
    std::vector<Bucket> buckets{};
    std::vector<GatheredWeights> gathered{};
    std::vector<UnshardedWeights> unsharded{};
  };
  const LayerParameters& layer_parameters(int number) const;
  Accumulator accumulator_of(const NumberedLayer& numbered, const ParamSpec& spec, const Tie* tie) const;
  void add(const NumberedLayer& numbered, const Layout& layout, std::span<const Tie> ties);
  void check_names() const;
  void check_tied(const Tie& tie) const;
  /// Its index in reductions_.
  std::size_t add_reduction(std::vector<std::string> axes);
  void put_into_bucket(LayerParameters& layer, Accumulator& accumulator, const ParamSpec& spec, bool tied) const;
  /// Rounded up so that both weights and working weights can be aligned as the arena does.
  std::int64_t aligned_elements(std::int64_t elements) const;
  void divide_buckets(LayerParameters& layer, int rank, const Layout& layout);
  void assign_owned_parts(const LayerParameters& layer);
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
  bool scatters(const Bucket& bucket) const { return bucket.sharded && schedule::scatters_gradients(sharding_); }
  void assign_gradients(RankMemory& memory);
  void assign_bucket(Bucket& bucket, RankMemory& memory) const;
  void assign_accumulators(LayerParameters& layer, RankMemory& memory);
  TensorView master_tensor(RankMemory& memory, const Shape& shape) const;
  TensorView state_tensor(RankMemory& memory, const Shape& shape) const;
  Parameter& local(std::size_t index) { return parameters_[model_parameters_[index].index.at(here_)]; }

  int here_;
  MemoryTypes types_;
  std::size_t states_;
  schedule::Sharding sharding_;
  std::vector<ModelParameter> model_parameters_;
  std::map<int, std::size_t> counts_; // number of parameters, by rank
  std::vector<Parameter> parameters_;
  std::vector<GlobalParameter> global_;
  std::vector<LayerParameters> layers_; // of the whole model
  std::vector<Reduction> reductions_;
  std::int64_t slot_elements_ = 0; // elements of a shared accumulator; 0: accumulators are not shared
  std::vector<TensorView> slots_;  // shared accumulators
  std::int64_t weight_slot_elements_ = 0;
  std::vector<TensorView> weight_slots_; // of Pool::weights
  bool saves_weights_ = false;
  bool offloads_ = false;
  bool has_gradients_ = true;
};

/// The axes over which the gradients of a parameter are added, of those with more than one rank: those that divide
/// samples or positions and do not cut the parameter, and ParamSpec::partial. In the order of the layout.
std::vector<std::string> reduction_axes(const ParamSpec& spec, const Layout& layout);

/// The part of a parameter's storage without padding; contiguous.
TensorView without_padding(const TensorView& view, const ParamSpec& spec);
std::int64_t stored_elements(const ParamSpec& spec);

} // namespace triax::executor
