// SPDX-License-Identifier: Apache-2.0
#include "single_rank.hpp"

#include "communicator.hpp"

namespace triax::comm_nccl {

Work SoloCommunicator::copy(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  if (ended_.load(std::memory_order_acquire)) {
    --stats_.ops; // do_* is called after it was counted; a failed post is not an operation
    if (!dead_event_.state()) {
      const std::lock_guard lock(mutex_);
      dead_event_ = dead_.arm();
      dead_.fail(reason_);
    }
    return {dead_event_, action};
  }
  if (in.data() != out.data() && in.elements() > 0) device_.copy(out.flat(), in.flat(), stream);
  return {stream.record(), action};
}

Work SoloCommunicator::do_all_reduce(const TensorView& in, const TensorView& out, Reduce, Stream& stream,
                                     ActionId action) {
  check_reducible(in, group());
  return copy(in, out, stream, action);
}

Work SoloCommunicator::do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce, Stream& stream,
                                         ActionId action) {
  check_reducible(in, group());
  return copy(in, out, stream, action);
}

Work SoloCommunicator::do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return copy(in, out, stream, action);
}

Work SoloCommunicator::do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return copy(in, out, stream, action);
}

Work SoloCommunicator::do_broadcast(const TensorView& view, int, Stream& stream, ActionId action) {
  return copy(view, view, stream, action);
}

/// The group has no peers, so the set is empty.
Work SoloCommunicator::do_exchange(std::span<const Transfer>, Stream& stream, ActionId action) {
  return copy({}, {}, stream, action);
}

void SoloCommunicator::barrier(Deadline) {
  const std::lock_guard lock(mutex_);
  if (!reason_.empty()) throw Error(reason_, text("barrier of group {}", group().id));
}

void SoloCommunicator::abort(std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  reason_ = text("rank {} aborted group {}: {}", group().ranks.front(), group().id, why);
  ended_.store(true, std::memory_order_release);
  device_.abort_flag().raise(reason_);
}

} // namespace triax::comm_nccl
