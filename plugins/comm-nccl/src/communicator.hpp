// One member of a group: posts are calls of NCCL on the native stream of the caller's, and their Work is what the
// stream records behind them.
//
// Threads: the rank's main thread, but for abort(). Ownership: owns its NCCL communicators; refers to the store, which
// outlives it. Blocking: barrier(), until its deadline; the destructor: two seconds at most until the other members end
// the group too, then as long as NCCL takes to destroy or abort what is left, for which it knows no deadline. abort()
// begins the aborts of all its NCCL communicators and does not wait for them. A post does not block: but the first
// transfer to a member that is no neighbour connects the two, and waits for the other's post; and where CUDA's queue of
// launches is full, a launch waits for the GPU. Errors: Error from a post that NCCL refuses. What NCCL finds later, and
// what another member tells, ends the group and raises the rank's interrupt: an aborted kernel leaves garbage behind it
// on its stream.
//
// NCCL keeps the calls of one communicator in the order in which they were made, whatever streams they are on;
// transfers between two members meet in that order too, as NCCL knows no channels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "meeting.hpp"
#include "news.hpp"
#include "triax/registration.hpp"

namespace comm_nccl {

/// Throws Error for bytes.
void check_reducible(const TensorView& view, const Group& group);

class NcclCommunicator final : public Communicator, private Registration {
 public:
  /// `registers`: memory that it is told of is registered with NCCL.
  NcclCommunicator(const NcclApi& api, Device& device, Store& store, const Group& group, Meeting meeting,
                   bool registers);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Asks NCCL for errors, and the store for news where nothing has been posted for a while: not at each call.
  void progress() noexcept override;
  void* extension(std::string_view id) override;

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
  void add(void* data, std::size_t bytes) override;

  /// What a call moves out of and into this rank.
  struct Bytes {
    std::uint64_t out = 0, in = 0;
  };

  template <class Call>
  Work post(const char* name, Bytes bytes, bool moves, Stream& stream, ActionId action, Call call);
  template <class Calls>
  Work post_set(Handle& handle, Bytes bytes, Stream& stream, ActionId action, Calls calls);
  Work posted(Bytes bytes, Stream& stream, ActionId action);
  Work refused(ActionId action);
  /// Gives up a post that NCCL is not through with; pumps.
  auto patience(const char* call);
  ncclResult_t transfer(const Transfer& one, int peer, ncclComm_t comm, cudaStream_t native);
  /// The communicator of the one edge that all transfers are along, or null.
  const Meeting::EdgeHandle* edge_of_all(std::span<const Transfer> transfers) const;
  Handle& group_handle() { return *meeting_.group; }
  template <class Body>
  void for_handles(Body body);
  bool busy();

  void end(const std::string& reason, bool tell) noexcept;
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  std::string reason() const;
  void tell_what_is_due() noexcept;
  void look_for_errors();
  void look_for_news();
  bool waits_for(int member, const Posted& theirs) const;
  std::string rank_text(int member) const;
  std::string others_text() const;

  const NcclApi& api_;
  Device& device_;
  const bool registers_;
  Meeting meeting_;
  News news_;
  Posted posted_;
  std::uint64_t barriers_ = 0;
  Clock::time_point last_post_, next_look_, next_news_;
  Clock::duration news_pause_{};
  mutable std::mutex mutex_; // of reason_
  std::string reason_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> untold_{false}; // the others do not know yet that it has ended
  HostEvent dead_;                  // fails what is posted after the end
  Event dead_event_;
};

} // namespace comm_nccl
