// SPDX-License-Identifier: Apache-2.0
// Optimizers: they update master weights and named state from gradients. The engine owns and shards all three.
// In each training step, step() is called at least once for each stage of the rank: once with all parameters of the
// stage, or several times with a part of them if state is offloaded.
//
// Threads: the rank's main thread, one call at a time; step() on another thread of the rank if the host updates with a
// delay. Ownership: the engine's memory is passed in as views. Blocking: never; work is enqueued on the stream. Errors:
// Error.
//
// The duties of step(). The operations `adamw` and `sgd` of a kernel set fulfil all of them; an optimizer with its own
// loops over host memory must do so itself:
// - call Stream::ready() of StepArgs::op before it reads or writes a view or the scalars: earlier work may still run;
// - return without a change if StepScalars::skip is not 0: gradients may be infinite or NaN;
// - multiply gradients by StepScalars::clip, which also divides by the loss scale;
// - use StepScalars::step for corrections of a first step: it counts from 1, without skipped steps;
// - apply weight decay to parameters with ParamSpec::decay only;
// - write the new values to `master`, and to `working`, unless that is empty, rounded once to its type (f32, f64,
//   bf16 or f16). It does not read `working`.
// It must not change `gradient`, or elements outside of the views.
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

/// Version of the interface; docs/plugins/changelog.md has its history.
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

  /// For values of a whole parameter, such as a norm. The ranks of a group have this parameter and its gradient, and
  /// each owns a part: the elements from `owned_first` on. A sum over owned() of these ranks, and then of the ranks of
  /// each axis in ParamSpec::cuts, is that of the global tensor. The part does not depend on `optimizer.shard`.
  /// @{
  std::string group = {};                           // Group::axis; empty: this rank owns all
  int members = 1;                                  // ranks of the group
  std::int64_t owned_first = 0, owned_elements = 0; // with a group; 0 elements if other ranks own all
  /// The owned elements of `master`, `gradient`, or a tensor of `state`.
  TensorView owned(const TensorView& view) const {
    if (group.empty()) return view;
    const std::int64_t begin = owned_first - first;
    return view.slice(0, begin, begin + owned_elements);
  }
  bool sharded = false; // the views have the owned elements only, on all ranks of the group (`optimizer.shard`)
  /// @}
};

/// The properties of an optimizer, from which the engine allocates its state.
struct OptimizerTraits {
  std::vector<std::string> state; // distinct names of a parameter's state tensors ("m", "v"), which start as zeros;
                                  // of letters, digits, "_" and "-"
  /// Whether the update of an element depends on values of this element only.
  bool elementwise = true;
  /// Whether an update that is not elementwise gets values of whole parameters from ParameterShard::owned() of all
  /// ranks of the group.
  bool adds_over_group = false;

  /// Whether parameters may be divided over data ranks (`optimizer.shard`): the engine refuses it otherwise.
  bool may_be_sharded() const { return elementwise || adds_over_group; }
};

/// Arguments of a step.
struct StepArgs {
  const StepScalars* scalars = nullptr; // lr, clip, step...; in the memory that OptimizerRequest::device has
  double weight_decay = 0;              // applied to parameters with ParamSpec::decay
  const Groups& groups;                 // for values of a whole parameter, such as a norm over the axes that cut it
  std::span<std::byte> scratch;         // of scratch_bytes(), in the same memory; its content is lost between calls
  OpContext op;
  ActionId action = kNoAction;
};

/// The requirements of a run on an optimizer, before a device is opened.
struct OptimizerRequest {
  DType master = DType::f32; // of master weights, gradients and state
  /// Where the memory of the shards and of StepScalars is. On DeviceKind::host, step() may compute on the views itself,
  /// after Stream::ready() and unless they have no data (dry run). On any other device all work must go
  /// through the KernelSet. An optimizer with its own loops must refuse such a device in supports().
  DeviceKind device = DeviceKind::host;
};

/// A plugin of the kind optimizer: updates the shards of one rank.
class TRIAX_API Optimizer : public Extensible {
 public:
  using Interface = Optimizer;
  static constexpr const char* kKind = "optimizer";
  static constexpr std::uint32_t kInterfaceVersion = kOptimizerInterface;

  virtual ~Optimizer();
  /// Called before the other functions. Returns every reason why the request cannot run; empty if it can.
  virtual Refusals supports(const OptimizerRequest& request) const = 0;
  /// Every call returns the same.
  virtual OptimizerTraits traits() const = 0;
  /// Called before the first step with all shards of this rank. Allocate the host memory that step() needs here. The
  /// list is valid in this call only.
  virtual void prepare(std::span<const ParameterShard> shards) = 0;
  /// Bytes of StepArgs::scratch that a step of these shards needs; less for fewer shards.
  virtual std::size_t scratch_bytes(std::span<const ParameterShard> shards) const;
  /// Updates these shards: any of those of prepare(), in the same order. Within a training step, each is in one call.
  /// Ranks that differ in axes that divide tensors, samples or positions make the same calls, with the same parameters,
  /// unless the optimizer is elementwise; ranks of the pipeline axis do not. A dry run calls it too, with views without
  /// data and without scratch: then post the same collectives and operations, and read no memory.
  virtual void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) = 0;
};

} // namespace triax

// Contract
//
// Before the first step
//
// [O1] supports() accepts a request, or refuses it: each reason has a message, and the full names of the configuration
//      keys that the user can change ("train.precision"). It accepts a floating master type on the host, and refuses
//      types that are not floating.
// [O2] traits() is the same in every call. Its `state` has at most 64 distinct names of letters, digits, "_" and "-",
//      other than "master". The tensors start as zeros.
// [O3] scratch_bytes() of fewer shards is not more. A step uses no scratch memory beyond it.
//
// The update
//
// [O4] If traits().elementwise, a part of a parameter (`first`) gets the bits that it gets in the whole parameter.
// [O5] The shards of prepare() may be stepped in any number of calls, each with any of them: the bits are those of one
//      call. Shards that are not in a call do not change.
// [O6] Equal calls give equal bits, in every object.
// [O7] scalars->skip: master weights, state and working weights do not change, whatever the gradient holds, and later
//      steps have the bits that they have without the skipped one.
// [O8] The gradient is multiplied by scalars->clip.
// [O9] With scalars->lr = 0 and without weight decay, the master weights do not change; with a learning rate they do.
// [O10] weight_decay changes parameters with ParamSpec::decay, and no others.
// [O11] After a step that is not skipped, all of `working` is `master`, rounded to its type to nearest, ties to even.
// [O12] A step writes master weights, state, working weights and scratch memory of its shards, and nothing beside them.
//
// Streams, memory and dry runs
//
// [O13] A step begins after the earlier items of its stream: on the host, own loops follow Stream::ready().
// [O14] Between calls, the engine may overwrite gradients and scratch memory.
// [O15] In the steady state, step() does not allocate.
// [O16] Dry run: with views without data, step() reads no memory, and calls the operations that it calls with data. It
//       posts the collectives of a step that is not skipped, in the same order.
// [O17] If supports() accepts a device other than the host, step() does not access the memory of shards and scalars
//       itself.
//
// Checkpoints
//
// [O18] What later steps need is in master weights, state tensors, StepScalars and SavedState: a new object that gets
//       them continues with equal bits.
// [O19] SavedState::save() gives UTF-8 of at most 64 KiB, which depends on the steps only; load() of it, then save(),
//       gives the same text. load() throws Error for a text that it cannot read.
//
// Ranks that divide parameters
//
// [O20] Ranks that have parts of a parameter, by ParamSpec::cuts or ParameterShard::group, update it as one rank that
//       has all of it: with equal bits if traits().elementwise, and else up to the rounding of sums, which ranks add in
//       another order.
// [O21] Elements that several ranks have get equal bits on them.
// [O22] ParameterShard::sharded changes no bit, if traits().may_be_sharded().
// [O23] The ranks of a group post the same collectives, in the same order also with those of their other groups, even
//       if they own no element. If traits().elementwise, they post none.
