// The few numbers of a step: what goes to the device (StepScalars) and what comes back (losses, norms of gradients).
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: send() and collect() wait.
//
// The loss is added in double in the order of samples, over all data ranks; the square of the norm is added in double
// in the order of parameters, a parameter's shards in the order of tensor ranks, a replicated or tied one once. So
// neither depends on the layout's pipeline size or on the schedule, and every rank gets the same bits.
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

class StepValues {
 public:
  StepValues(const BatchShape& batch, int tensor_size, std::size_t parameters);
  void place(RankMemory& memory);

  /// Brings `scalars` to the device.
  void send(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline);
  const StepScalars* on_device() const { return scalars_.as<StepScalars>(); }

  /// Puts the sum of squares of every gradient on the stream.
  void add_squares(const std::vector<Parameter>& parameters, const ValueContext& context) const;
  /// Brings the losses, and with them the squares of add_squares, to the host.
  void collect(const Batches& batches, bool squares, const ValueContext& context);

  // After collect():
  /// Of the global batch, added up. Throws Error naming the sample if one is not finite; `first`: its first sample.
  double loss_sum(std::int64_t first) const;
  /// Throws Error naming the parameter if it is not finite.
  double norm(const std::vector<Parameter>& parameters) const;

 private:
  BatchShape batch_;
  std::int64_t tensor_, parameters_;
  TensorView scalars_, host_scalars_;                    // one StepScalars
  TensorView squares_, gathered_squares_, host_squares_; // f64 [n], [t, n]
  TensorView gathered_losses_, host_losses_;             // f64 [d, m*b]
  std::vector<TensorView> square_of_;
  Event sent_;
};

} // namespace triax::executor
