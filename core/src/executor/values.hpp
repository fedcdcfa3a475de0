// SPDX-License-Identifier: Apache-2.0
// The few numbers of a step: what goes to the device (StepScalars) and what comes back (losses, norms of gradients).
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: start() and send_rate() wait.
//
// The loss is added in double in the order of samples, over all data ranks; the square of the norm is added in double
// in the order of the model's parameters, a parameter's shards in the order of tensor ranks, a replicated or tied one
// once. So neither depends on the layout's pipeline size or on the schedule, and every rank gets the same bits. What
// follows from the norm, clipping and whether the step is skipped, is decided on the device, from what all ranks have:
// the host reads it when the step is over.
#pragma once

#include <vector>

#include "executor/batches.hpp"
#include "executor/parameters.hpp"
#include "triax/communicator.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::executor {

/// What the values of a step are computed with.
struct ValueContext {
  Device& device;
  KernelSet& kernels;
  Stream& stream;
  const Groups& groups;
  std::span<std::byte> scratch;
  Deadline deadline;
  ActionId action = kNoAction;
};

/// Which ranks have what.
struct ValueSources {
  int pipeline = 1;  // size
  int loss_rank = 0; // the pipeline rank of the last stage
  int tensor = 1;    // size
};

class StepValues {
 public:
  /// The parameters must outlive it.
  StepValues(const BatchShape& batch, const ValueSources& sources, const Parameters& parameters);
  void place(RankMemory& memory);

  /// Brings what the first step begins with to the device.
  void start(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline);
  /// Brings the learning rate of a step to the device; the other scalars are the device's.
  void send_rate(float lr, Device& device, Stream& stream, Deadline deadline);
  const StepScalars* on_device() const { return scalars_.as<StepScalars>(); }

  /// Puts the sum of squares of every gradient of this rank on the stream.
  void add_squares(const ValueContext& context) const;
  /// Brings the losses of all ranks together, on every rank, and starts them to the host.
  void collect_losses(const Batches& batches, const ValueContext& context);
  /// The same with the squares of add_squares.
  void collect_squares(const ValueContext& context);
  /// After both: decides about the optimizer's step, on the device, and starts the decision to the host.
  void decide(double clip_grad, const LossScaling& scaling, const ValueContext& context);

  // Once the stream has come to its end:
  /// Of the global batch, added up. Throws Error naming the sample if one is not finite; `first`: its first sample.
  double loss_sum(std::int64_t first) const;
  /// As decide() left them.
  const StepScalars& decided() const { return *host_scalars_.as<const StepScalars>(); }
  /// Of a step that decide() skipped, for its gradient: "the gradient of head/norm.weight is not finite".
  std::string what_is_not_finite() const;

 private:
  /// The numbers of one group, those of all pipeline ranks, and these on the host.
  struct Gathered {
    TensorView of_group, of_all, on_host;
  };
  static void collect(const TensorView& own, const char* axis, const Gathered& values, const ValueContext& context);
  /// visit(parameter, place of a shard's square in squares_), in the order in which they are added.
  template <class Visit>
  void for_each_square(Visit visit) const;

  BatchShape batch_;
  ValueSources sources_;
  const Parameters& parameters_;
  std::int64_t most_;                 // parameters of a rank
  TensorView scalars_, host_scalars_; // one StepScalars
  TensorView host_rate_;              // f32 [1]
  TensorView order_, host_order_;     // i32: of the squares, see StepControl
  TensorView own_squares_;            // f64 [n]
  Gathered squares_;                  // f64 [t, n], [p, t, n]
  Gathered losses_;                   // f64 [d, m*b], [p, d, m*b]
  std::vector<TensorView> square_of_;
  Event sent_;
};

} // namespace triax::executor
