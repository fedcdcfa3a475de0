// SPDX-License-Identifier: Apache-2.0
// The scalars of a step: sent to the device (StepScalars) and read back (losses, gradient norms).
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: start(), send_rate() and send_request()
// wait.
//
// Losses are added in double, in the order of samples, over all ranks with samples; parts of a sample's loss, in the
// order of the ranks with its positions. Squares of the norm are added in double. Each rank computes those of the parts
// that it owns; an all-reduce over the group of their buckets gives those of its parameters. They are added in the
// order of the model's parameters; parts of a parameter in the order of the ranks that it is cut over; replicated and
// tied parameters once. So the sums depend neither on the pipeline size nor on the schedule, and all ranks get the same
// bits. Clipping and skipping depend on the norm. The device decides them, from the values of all ranks; the host reads
// the decision at the end of the step.
#pragma once

#include <vector>

#include "executor/batches.hpp"
#include "executor/parameters.hpp"
#include "triax/communicator.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::executor {

/// The objects with which the scalars of a step are computed.
struct ValueContext {
  Device& device;
  KernelSet& kernels;
  Stream& stream;
  const Groups& groups;
  std::span<std::byte> scratch;
  Deadline deadline;
  ActionId action = kNoAction;
};

class StepReductions {
 public:
  /// `loss_rank`: pipeline rank of the last stage. Layout and parameters must outlive it.
  StepReductions(const BatchShape& batch, const Layout& layout, int loss_rank, const Parameters& parameters);
  void assign_memory(const Batches& batches, RankMemory& memory);

  /// Uploads the scalars of the first step.
  void start(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline);
  /// Uploads the learning rate of a step; the device computes the other scalars.
  void send_rate(float lr, Device& device, Stream& stream, Deadline deadline);
  /// Uploads a number that this rank asks all ranks to read with the losses: a signal, or 0.
  void send_request(std::int32_t request, const Batches& batches, Device& device, Stream& stream, Deadline deadline);
  const StepScalars* on_device() const { return scalars_.as<StepScalars>(); }

  /// Enqueues the sums of squares of all gradients of this rank, over the ranks that share them.
  void add_squares(const ValueContext& context) const;
  /// Gathers the losses and requests of all ranks on every rank, and starts their download.
  void collect_losses(const Batches& batches, const ValueContext& context);
  /// The same for the squares of add_squares().
  void collect_squares(const ValueContext& context);
  /// Call it after both: decides on the device whether and how the optimizer steps, and starts the download of the
  /// decision.
  void decide(double clip_grad, const LossScaling& scaling, const ValueContext& context);

  // After the stream has finished:
  /// Sum over the first `count` samples of the global batch.
  double loss_sum(std::int64_t count) const;
  /// "the loss of sample 4 (microbatch 0 of data rank 0) is not a number", of the first of these samples that is not
  /// finite; empty if all are. `first`: number of the batch's first sample.
  std::string nonfinite_loss(std::int64_t first, std::int64_t count) const;
  /// The largest request that a rank has sent.
  std::int32_t largest_request() const;
  /// The result of decide().
  const StepScalars& decided() const { return *host_scalars_.as<const StepScalars>(); }
  /// If decide() skipped the step and all losses are finite: "the gradient of head/norm.weight is not finite".
  std::string nonfinite_gradient() const;

 private:
  /// Values that are gathered over one axis after the other, the last axis slowest.
  struct Gathered {
    std::vector<std::string> axes;
    std::vector<TensorView> over; // by axis: the values of the ranks of this axis and of those before it
    TensorView all, on_host;      // all: the last of `over`, or without axes the rank's own
  };
  void assign(Gathered& values, const TensorView& own, RankMemory& memory) const;
  static void collect(const TensorView& own, const Gathered& values, const ValueContext& context);
  /// visit(parameter, index of a part's square in squares_.all), in the order of addition.
  template <class Visit>
  void for_each_square(Visit visit) const;
  void assign_squares(RankMemory& memory);
  void assign_copies(std::size_t reduction);
  /// Those of the last stage, [members, m*b + 1], of all losses.
  TensorView of_last_stage(const TensorView& losses) const;
  double loss_of(std::int64_t sample) const;

  BatchShape batch_;
  const Layout& layout_;
  std::string layers_axis_; // empty if it has one rank
  int loss_rank_;
  const Parameters& parameters_;
  std::int64_t most_; // parameters per rank
  /// By rank of the axes that divide samples: the members of the losses' gather that have its samples. More than one if
  /// positions are divided.
  std::vector<std::vector<std::int64_t>> members_of_;
  TensorView scalars_, host_scalars_; // one StepScalars
  TensorView host_rate_;              // f32 [1]
  TensorView host_request_;           // f64 [1]
  TensorView order_, host_order_;     // i32: order of the squares, see StepControl
  /// Squares of the parameters that are added over a group: f64, by Parameter::global, so that an element's place and
  /// the length depend on the model only. The sums of this rank's parameters go to own_squares_.
  struct AddedSquares {
    std::string group;
    TensorView parts, sums;                                // of this rank's owned parts, zeros elsewhere; of the group
    std::vector<std::pair<TensorView, TensorView>> copies; // from, to
  };
  std::vector<AddedSquares> added_;
  TensorView own_squares_; // f64 [n], by parameter of this rank; n: the most parameters of a rank
  Gathered squares_;       // own_squares_ of all ranks over the axes that shard parameters or divide layers
  Gathered losses_;        // Batches::values(), over the axes that divide samples or positions, then layers
  std::vector<std::string> other_axes_; // over which only requests are exchanged
  std::vector<TensorView> square_of_;   // of this rank's part of each parameter, in own_squares_ or AddedSquares::parts
  Event sent_, request_sent_;
};

} // namespace triax::executor
