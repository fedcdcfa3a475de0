// SPDX-License-Identifier: Apache-2.0
// The parameters of a whole model, and the buckets in which their gradients are reduced: all that ranks have in common
// that differ in their pipeline rank only.
//
// Threads: any, it does not change. Ownership: borrows the layers' descriptions. Errors: ModelError for a tie with an
// unknown parameter or with different sizes, and for a description of a parameter that contradicts itself or the
// layout.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/memory.hpp"
#include "schedule/rules.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// The elements of a parameter that a rank owns, of its storage without padding, seen flat. The ranks of a bucket's
/// group hold the same weights and, once reduced, the same gradients. Each owns a part of the bucket: the elements
/// divided by the number of ranks, rounded up to 256 bytes, in the order of the group; the last parts may be shorter or
/// empty. It squares the gradients of its part for the norm, and is the one to save its state.
struct OwnedPart {
  std::int64_t first = 0, count = 0; // count 0: other ranks own all of the parameter
  bool operator==(const OwnedPart&) const = default;
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

class ModelParameters {
 public:
  /// A layer of the model, by number, and the pipeline rank that has it.
  struct NumberedLayer {
    int number = 0;
    const Layer* layer = nullptr;
    int rank = 0;
  };
  /// A parameter of the model, with all layers that are tied to it.
  struct ModelParameter {
    std::string name;
    const ParamSpec* spec = nullptr;
    std::size_t reduction = 0;
    std::vector<int> ranks{};           // of its layers, in the order of the model
    std::map<int, std::size_t> index{}; // in Parameters::all() of each pipeline rank that stores it
    std::map<int, int> layer{};         // number of its first layer on each of them
    OwnedPart owned{};
    bool sharded = false;
    std::int64_t part = 0;
    int members = 1;
  };
  /// An accumulator of a parameter: one per layer, in a bucket of that layer.
  struct Accumulator {
    std::size_t parameter = 0; // index in parameters()
    std::size_t number = 0;    // among the accumulators of the parameter
    std::size_t bucket = 0;    // number of its bucket in the layer
    std::int64_t offset = 0;   // in the bucket, in elements
  };
  struct LayerParameters {
    int number = 0, rank = 0;
    std::vector<const ParamSpec*> specs{};
    std::vector<Accumulator> accumulators{};
    std::vector<Bucket> buckets{}; // without memory
  };

  /// `layers`: the whole model in order; `rank`: one of the layout, whose parts of buckets these are. `sharding`: what
  /// the ranks of a bucket divide, if they differ in samples.
  ModelParameters(std::span<const NumberedLayer> layers, int rank, const Layout& layout, std::span<const Tie> ties,
                  const MemoryTypes& types, schedule::Sharding sharding);

  /// In the order of the model; tied parameters once.
  const std::vector<ModelParameter>& all() const { return parameters_; }
  const std::vector<GlobalParameter>& global() const { return global_; }
  const std::vector<LayerParameters>& layers() const { return layers_; }
  const std::vector<Reduction>& reductions() const { return reductions_; }
  /// The parameters that a pipeline rank stores.
  std::size_t count_on(int rank) const;
  std::size_t most_on_a_rank() const;
  const MemoryTypes& types() const { return types_; }
  schedule::Sharding sharding() const { return sharding_; }

 private:
  Accumulator accumulator_of(const NumberedLayer& numbered, const ParamSpec& spec, const Tie* tie) const;
  const LayerParameters& layer_parameters(int number) const;
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

  MemoryTypes types_;
  schedule::Sharding sharding_;
  std::vector<ModelParameter> parameters_;
  std::map<int, std::size_t> counts_; // number of parameters, by pipeline rank
  std::vector<GlobalParameter> global_;
  std::vector<LayerParameters> layers_;
  std::vector<Reduction> reductions_;
};

/// Throws ModelError if a description contradicts itself or the layout.
void check_spec(const ParamSpec& spec, const Layout& layout);

/// The axes over which the gradients of a parameter are added, of those with more than one rank: those that divide
/// samples or positions and do not cut the parameter, and ParamSpec::partial. In the order of the layout.
std::vector<std::string> reduction_axes(const ParamSpec& spec, const Layout& layout);

/// The part of a parameter's storage without padding; contiguous.
TensorView without_padding(const TensorView& view, const ParamSpec& spec);
std::int64_t stored_elements(const ParamSpec& spec);

} // namespace triax::executor
