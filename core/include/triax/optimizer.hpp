// SPDX-License-Identifier: Apache-2.0
// Optimizers: they update master weights and named state from gradients. The engine owns and shards all three.
//
// Threads: the rank's main thread. Ownership: the engine's memory is passed in as views. Blocking: never; work is
// enqueued on the stream. Errors: Error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/extension.hpp"
#include "triax/kernels.hpp"

namespace triax {

inline constexpr std::uint32_t kOptimizerInterface = 3;

/// One parameter, or the part of it that this rank updates. All views are flat, and all but `working` have the master
/// type.
struct ParameterShard {
  std::string name; // "block 3/attention.qkv.weight"
  TensorView master, gradient;
  TensorView working;                // the weights that layers read; empty if they read the master weights
  std::span<const TensorView> state; // in the order of OptimizerTraits::state
  bool decay = false;                // weight decay applies
};

struct OptimizerTraits {
  std::vector<std::string> state; // distinct names of a parameter's state tensors ("m", "v"), which start as zeros
  bool elementwise = true;        // a shard may be any part of a parameter
};

struct StepArgs {
  const StepScalars* scalars = nullptr; // device memory: lr, clip, step...
  double weight_decay = 0;              // applied to shards with `decay`
  OpContext op;
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
  /// Called before the first step with the shards of every later step. Allocate everything that step() needs here.
  virtual void prepare(std::span<const ParameterShard> shards) = 0;
  virtual void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) = 0;
};

} // namespace triax
