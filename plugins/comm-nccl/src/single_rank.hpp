// SPDX-License-Identifier: Apache-2.0
// Communicator of a group of one: calls copy, or do nothing, and do not use NCCL.
//
// Threads: the rank's main thread; abort() from any thread. Errors: after an abort, calls fail with its reason, and the
// rank's abort flag is set, as in larger groups.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "triax/communicator.hpp"

namespace triax::comm_nccl {

class SoloCommunicator final : public Communicator {
 public:
  SoloCommunicator(const Group& group, Device& device) : Communicator(group), device_(device) {}

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  void progress() noexcept override {}

 protected:
  Work do_all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                     ActionId action) override;
  Work do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                         ActionId action) override;
  Work do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) override;
  Work do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) override;
  Work do_broadcast(const TensorView& view, int root, Stream& stream, ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  Work copy(const TensorView& in, const TensorView& out, Stream& stream, ActionId action);

  Device& device_;
  std::mutex mutex_; // guards reason_
  std::string reason_;
  std::atomic<bool> ended_{false};
  HostEvent dead_; // its failed event is returned for calls posted after an abort
  Event dead_event_;
};

} // namespace triax::comm_nccl
