// Optimizers: they step over master weights, gradients and named state that the engine owns, shards and checkpoints.
//
// Threads: the rank's main thread. Ownership: the engine's memory comes in as views. Blocking: work is put on the
// stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/kernels.hpp"

namespace triax {

inline constexpr std::uint32_t kOptimizerInterface = 1;

/// One parameter, or the part of it that this rank updates. All views but `working` have the master dtype; flat.
struct ParameterShard {
  std::string name; // "block 3/attention.qkv.weight"
  TensorView master, gradient;
  TensorView working;                // what the layers read; empty where the master itself is read
  std::span<const TensorView> state; // in the order of OptimizerTraits::state
  bool decay = false;                // weight decay applies
};

struct OptimizerTraits {
  std::vector<std::string> state; // names of the state tensors of a parameter: "m", "v"; they begin as zeros
  bool elementwise = true;        // may be given any part of a parameter
};

struct StepArgs {
  const StepScalars* scalars = nullptr; // device memory: lr, clip, step...
  double weight_decay = 0;              // for shards with `decay`
  OpContext op;
};

/// What a run asks of an optimizer.
struct OptimizerRequest {
  DType master = DType::f32;
};

class TRIAX_API Optimizer {
 public:
  using Interface = Optimizer;
  static constexpr const char* kKind = "optimizer";
  static constexpr std::uint32_t kInterfaceVersion = kOptimizerInterface;

  virtual ~Optimizer();
  virtual Support supports(const OptimizerRequest& request) const = 0;
  virtual OptimizerTraits traits() const = 0;
  /// Before the first step, with the shards that every step will get: room for whatever a step needs is made here.
  virtual void prepare(std::span<const ParameterShard> shards) = 0;
  virtual void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) = 0;
};

} // namespace triax
