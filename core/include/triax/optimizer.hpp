// SPDX-License-Identifier: Apache-2.0
// Optimizers: they update master weights and named state from gradients. The engine owns and shards all three.
// A step is called once for each stage of the rank, with the parameters of the stage.
//
// Threads: the rank's main thread. Ownership: the engine's memory is passed in as views. Blocking: never; work is
// enqueued on the stream. Errors: Error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "triax/extension.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax {

inline constexpr std::uint32_t kOptimizerInterface = 4;

/// One parameter, or the part of it that this rank updates: `master.elements()` elements from `first` on, of the
/// parameter as this rank stores it (ParamSpec::local) without padding, seen flat. All views are flat, and all but
/// `working` have the master type.
struct ParameterShard {
  std::string name;                // "block 3/attention.qkv.weight"
  const ParamSpec* spec = nullptr; // of the parameter; never null, valid as long as the shard
  std::int64_t first = 0;
  TensorView master, gradient;
  TensorView working;                // the weights that layers read; empty if they read the master weights
  std::span<const TensorView> state; // in the order of OptimizerTraits::state
};

struct OptimizerTraits {
  std::vector<std::string> state; // distinct names of a parameter's state tensors ("m", "v"), which start as zeros
};

struct StepArgs {
  const StepScalars* scalars = nullptr; // device memory: lr, clip, step...
  double weight_decay = 0;              // applied to parameters with ParamSpec::decay
  const Groups& groups;                 // for values of a whole parameter, such as a norm over the axes that cut it
  std::span<std::byte> scratch;         // of scratch_bytes(), in device memory; its content is lost between calls
  OpContext op;
  ActionId action = kNoAction;
};

/// What a run needs from an optimizer, before a device is opened.
struct OptimizerRequest {
  DType master = DType::f32; // of master weights, gradients and state
  /// Where the memory of the shards and of StepScalars is. On DeviceKind::host, step() may compute on the views itself,
  /// after Stream::ready() and unless they have no data (the planning call). On any other device all work must go
  /// through the KernelSet. An optimizer with its own loops must refuse such a device in supports().
  DeviceKind device = DeviceKind::host;
};

class TRIAX_API Optimizer : public Extensible {
 public:
  using Interface = Optimizer;
  static constexpr const char* kKind = "optimizer";
  static constexpr std::uint32_t kInterfaceVersion = kOptimizerInterface;

  virtual ~Optimizer();
  virtual Refusals supports(const OptimizerRequest& request) const = 0;
  virtual OptimizerTraits traits() const = 0;
  /// Called before the first step with all shards of this rank. Allocate the host memory that step() needs here.
  virtual void prepare(std::span<const ParameterShard> shards) = 0;
  /// Bytes of StepArgs::scratch that a step of these shards needs; less for fewer shards.
  virtual std::size_t scratch_bytes(std::span<const ParameterShard> shards) const;
  /// Updates these shards: any of those of prepare(), in the same order. Within a training step, each is in one call.
  /// The ranks that differ in axes that divide tensors, samples or positions make the same calls, with the same
  /// parameters; ranks of the pipeline axis do not. Planning calls it too, with views without data and without scratch:
  /// then post the same collectives and operations, and read no memory.
  virtual void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) = 0;
};

} // namespace triax
