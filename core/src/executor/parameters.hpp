// The parameters of a rank: one storage each, also for two that are tied, and an accumulator for every layer that adds
// to its gradient.
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: never. Errors: Error for a tie that
// names no parameter or two of different sizes.
//
// A tied pair keeps two accumulators, also on one stage: microbatches may reach the two layers in different orders
// under different schedules, and only two separate sums, added once at the end of the step, give the same bits always.
#pragma once

#include <string>
#include <vector>

#include "executor/memory.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"

namespace triax::executor {

struct Parameter {
  std::string name; // "block 3/attention.qkv.weight"
  const ParamSpec* spec = nullptr;
  TensorView master, gradient;
  TensorView working;             // what layers read; the master itself where the types are equal
  std::vector<TensorView> others; // accumulators of the layers tied to it
  std::vector<TensorView> state;  // the optimizer's, of the part that is no padding
};

struct MemoryTypes {
  DType compute = DType::f32, master = DType::f32;
};

class Parameters {
 public:
  /// `layers`: those of this rank, with their numbers in the model.
  struct NumberedLayer {
    int number = 0;
    const Layer* layer = nullptr;
  };
  Parameters(std::span<const NumberedLayer> layers, std::span<const Tie> ties, const MemoryTypes& types,
             std::size_t states);

  void place(RankMemory& memory);

  /// In the order of the model: every norm and every optimizer step goes through them in this order.
  std::vector<Parameter>& all() { return parameters_; }
  const std::vector<Parameter>& all() const { return parameters_; }
  /// What layer `number` reads, and what it adds its gradients to, in the order of its description.
  const std::vector<TensorView>& working_of(int number) const { return of_layer(number).working; }
  const std::vector<TensorView>& gradients_of(int number) const { return of_layer(number).gradients; }

  /// One per parameter; views into state live as long as this object and its placement.
  std::vector<ParameterShard> shards() const;
  bool separate_working() const { return types_.compute != types_.master; }

 private:
  struct Side {
    std::size_t parameter = 0;
    int other = -1; // index in Parameter::others, or -1: its first layer
  };
  struct OfLayer {
    int number = 0;
    std::vector<Side> sides;
    std::vector<TensorView> working, gradients;
  };
  const OfLayer& of_layer(int number) const;
  void add(const NumberedLayer& numbered, std::span<const Tie> ties);

  MemoryTypes types_;
  std::size_t states_;
  std::vector<Parameter> parameters_;
  std::vector<OfLayer> layers_;
};

/// The part of a parameter's storage that is no padding; contiguous.
TensorView without_padding(const TensorView& view, const ParamSpec& spec);

} // namespace triax::executor
