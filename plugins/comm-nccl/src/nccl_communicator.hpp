// SPDX-License-Identifier: Apache-2.0
// One member of a group. A post is an NCCL call on the native stream of the caller's stream; its Work is an event
// recorded after it.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: owns its NCCL communicators; refers to the
// store, which outlives it. Blocking: barrier(), until its deadline. The destructor waits at most two seconds for the
// other members to end the group too, and then as long as NCCL takes to destroy or abort, which has no timeout. abort()
// starts the aborts of all NCCL communicators and does not wait for them. A post does not block, with two exceptions:
// the first transfer between members that are not neighbours connects them and waits for the peer's post, and a launch
// waits for the GPU if CUDA's launch queue is full. Where NCCL launches calls in a thread (handle.hpp), a post runs the
// progress loop until the call is launched. Errors: Error from a post that NCCL refuses. An asynchronous NCCL
// error, or a failure reported by another member, ends the group and sets the rank's abort flag, because an aborted
// kernel leaves undefined data on its stream.
//
// NCCL executes the calls of one communicator in posting order, on whatever streams they are. Transfers between two
// members match in that order too, because NCCL has no channels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "group_status.hpp"
#include "nccl_bootstrap.hpp"
#include "triax/registration.hpp"

namespace triax::comm_nccl {

class NcclCommunicator final : public Communicator, private Registration {
 public:
  /// `registers`: register memory blocks with NCCL when the device announces them.
  NcclCommunicator(const NcclApi& api, Device& device, Store& store, const Group& group, GroupHandles handles,
                   bool registers);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Polls NCCL for errors, and the store for aborts and departures if nothing was posted recently; both rate-limited.
  void progress() noexcept override;
  void* extension(std::string_view id) noexcept override;

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  void add(void* data, std::size_t bytes) override;

  ncclResult_t launch(const Collective& collective, const TensorView& in, const TensorView& out, ncclComm_t comm,
                      cudaStream_t native);
  ncclResult_t launch_all_to_all(const TensorView& in, const TensorView& out, ncclComm_t comm, cudaStream_t native);
  template <class Calls>
  Work post_set(Handle& handle, Payload bytes, Stream& stream, ActionId action, Calls calls);
  Work posted(Payload bytes, Stream& stream, ActionId action);
  Work refused(ActionId action);
  /// Progress function for a post that is not complete in NCCL; throws at the device's default timeout.
  auto poller(const char* call);
  ncclResult_t transfer(const Transfer& one, int peer, ncclComm_t comm, cudaStream_t native);
  /// The edge communicator, if all transfers are along one edge that has one; else null.
  const GroupHandles::EdgeHandle* edge_of_all(std::span<const Transfer> transfers) const;
  Handle& group_handle() { return *handles_.group; }
  template <class Body>
  void for_handles(Body body);
  bool busy();

  void end(const std::string& reason, bool announce) noexcept;
  bool ended() const noexcept { return ended_.raised(); }
  void send_pending_status() noexcept;
  void look_for_errors();
  void poll_status();
  bool waits_for(int member, const Posted& theirs) const;
  std::string rank_text(int member) const;
  std::string others_text() const;

  const NcclApi& api_;
  Device& device_;
  const bool registers_;
  GroupHandles handles_;
  GroupStatus group_status_;
  Posted posted_;
  std::uint64_t barriers_ = 0;
  Clock::time_point last_post_, next_look_, next_status_poll_;
  Clock::duration status_interval_{};
  AbortFlag ended_;
  std::atomic<bool> announced_{false}; // the store has the end and its reason, or they came from it
};

} // namespace triax::comm_nccl
