// SPDX-License-Identifier: Apache-2.0
// Communicators: a CommBackend is a plugin's object, one per rank; it joins one Communicator per process group.
//
// Threads: the rank's main thread uses a backend and its communicators; abort() and pending() may be called by any
// thread. Ownership: a backend must outlive its communicators; buffers belong to the transport from the post until the
// Work has fired. Blocking: only join(), barrier() and Device::wait() block, until their deadline. Errors: Error.
//
// Calls are posts: they never block and never complete inside the call. All views are contiguous. An edge is (peer,
// channel), in one direction. The contract is the numbered clauses at the end of this header; `triax plugins test`
// tests them, and docs/plugins/communicators.md explains them. In the contract, a rank runs its progress loop while it
// is in Device::wait(), Device::progress(), Stream::ready(), join() or barrier().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/extension.hpp"
#include "triax/layout.hpp"
#include "triax/tensor.hpp"

namespace triax {

/// Version of the interface; docs/plugins/changelog.md has its history.
inline constexpr std::uint32_t kCommunicatorInterface = 5;

/// The key-value store of the control plane, as communicators use it. Values are bytes. get() blocks.
class TRIAX_API Store {
 public:
  virtual ~Store();
  /// Sets the value of a key, which all ranks can read.
  virtual void set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key exists. Throws Error with the key at the deadline.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;
  /// Adds to a counter (0 if new) and returns the new value.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
};

/// How a reduction combines elements.
enum class Reduce : std::uint8_t { sum, max };

/// A collective, as data. Equal on all members of the group that post it.
struct Collective {
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };
  Kind kind = Kind::all_reduce;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum; // of all_reduce and reduce_scatter
  std::int32_t root = 0;       // of broadcast
  std::int64_t elements = 0;   // of `in`
  /// Whether it combines elements of several members.
  bool reduces() const noexcept { return kind == Kind::all_reduce || kind == Kind::reduce_scatter; }
  bool operator==(const Collective&) const = default;
};
/// "all_reduce"
TRIAX_API const char* name_of(Collective::Kind kind) noexcept;
/// "all_reduce of 12 f32 (sum)"
TRIAX_API std::string to_text(const Collective& collective);

/// Direction of a transfer, seen from the member that posts it.
enum class Direction { send, receive };

/// One send or receive of an exchange.
struct Transfer {
  Direction direction = Direction::send;
  int peer = 0;    // index in the group
  int channel = 0; // FIFO within (peer, channel)
  TensorView view;
};

/// Bytes of payload that a call sends from this member and receives on it.
struct Payload {
  std::uint64_t out = 0, in = 0;
};

/// Totals since join(). Bytes are payload sent to or received from other ranks.
struct CommStats {
  std::uint64_t ops = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t bytes_in = 0;
};

/// The last posted call, if it has not completed.
struct PendingCall {
  const char* name = nullptr; // "all_reduce"; null: it has completed
  ActionId action = kNoAction;
};

/// The members of one process group, as one of them sees it: collectives, exchanges, abort and barrier. The backend of
/// a rank creates it.
class TRIAX_API Communicator : public ProgressSource, public Extensible {
 public:
  explicit Communicator(Group group) : group_(std::move(group)) {}
  ~Communicator() override;

  /// The group, its number of members, and the rank of this member in the group.
  /// @{
  const Group& group() const noexcept { return group_; }
  int size() const noexcept { return group_.size(); }
  int rank() const noexcept { return group_.group_rank; }
  /// @}

  /// Posts a collective; the functions below describe each kind. `collective.dtype` and `elements` are those of `in`;
  /// a broadcast has one view as `in` and `out`.
  Work post(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
            ActionId action = kNoAction);

  /// out = reduction of `in` over the group, of any type but u8. Equal shapes; in place allowed.
  Work all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                  ActionId action = kNoAction);
  /// in: n*size elements; out: n elements, the reduction of part rank() of each member's `in`.
  Work reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                      ActionId action = kNoAction);
  /// in: n elements; out: n*size, in the order of the group. In place: in is this member's part of out.
  Work all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  /// in and out: n*size elements; part i of in goes to member i.
  Work all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  /// view: n elements, those of member `root` on all members.
  Work broadcast(const TensorView& view, int root, Stream& stream, ActionId action = kNoAction);
  /// Posts sends and receives as one call, which completes when all have.
  Work exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action = kNoAction);

  /// Items that are added to `stream` later start after the work. Does not block.
  void wait(const Work& work, Stream& stream) { stream.wait(work.event); }

  /// Returns when all members have called it. Throws Error with the missing ranks at the deadline.
  virtual void barrier(Deadline deadline) = 0;
  /// Makes all pending and later calls of this member fail with `why`, soon. Any thread.
  virtual void abort(std::string_view why) noexcept = 0;
  /// Operations and bytes since join().
  const CommStats& stats() const noexcept { return stats_; }
  /// For hang reports. Any thread.
  PendingCall pending() const noexcept;

 protected:
  /// Called with checked arguments. The states of the returned events must outlive the communicator: until the call's
  /// stream, and all streams that wait for the event, have dropped it.
  /// @{
  virtual Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                             ActionId action) = 0;
  virtual Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) = 0;
  /// @}

  /// The payload of a member in a collective that sends each element once: to the member that reduces it, and its
  /// result to each other member. A ring moves the same number of bytes.
  /// @{
  Payload payload_of(const Collective& collective) const noexcept { return payload_of(collective, rank()); }
  Payload payload_of(const Collective& collective, int member) const noexcept;
  /// @}
  /// The result of a post after the group has failed: an event that fails with `reason`. The operation is not counted.
  Work failed_post(const std::string& reason, ActionId action);
  /// Backends count bytes; the public functions count operations.
  void count(Payload bytes) noexcept {
    stats_.bytes_out += bytes.out;
    stats_.bytes_in += bytes.in;
  }

 private:
  Work record_post(const char* name, const Work& work) noexcept;

  Group group_;
  CommStats stats_;
  HostEvent failed_;   // for posts after the group has failed
  Event failed_event_; // armed at the first of them
  std::atomic<const char*> last_name_{nullptr};
  std::atomic<EventState*> last_state_{nullptr};
  std::atomic<std::uint64_t> last_generation_{0};
  std::atomic<ActionId> last_action_{kNoAction};
};

/// The guarantees of a backend, on which the verifier relies. If one is not kept, a verified program may deadlock.
struct CommTraits {
  enum class Order { serial, channel, tagged }; // one order for the device | one per edge | no order
  enum class Send { rendezvous, buffered };     // a send completes with its receive | when it is buffered
  enum class Post { nonblocking, blocking };
  enum class Reduction { rank_order, fixed, unspecified }; // summation order: by rank | same in every run | any
  enum class Ranks { one_per_process, many_per_process, same_process };
  Order order = Order::tagged;
  Send send = Send::rendezvous;
  std::size_t buffered_bytes = 0; // largest message of a buffered send
  Post post = Post::nonblocking;
  Reduction reduction = Reduction::unspecified;
  Ranks ranks = Ranks::one_per_process;
  bool stream_ordered = false; // on CUDA, all work is on the native stream, so a CUDA graph can capture it
};

/// The requirements of a run on a backend.
struct CommRequest {
  DeviceKind device = DeviceKind::host;
  std::vector<std::string> axes; // the axes that it serves
  bool ranks_are_threads = false;
  /// Whether to check what this machine has: its network devices, transports and environment. If false, the run
  /// may be started on another machine: ask nothing about this one.
  bool on_this_machine = true;
};

/// A plugin of the kind communicator: the object of one rank, which joins its groups.
class TRIAX_API CommBackend : public Extensible {
 public:
  using Interface = CommBackend;
  static constexpr const char* kKind = "communicator";
  static constexpr std::uint32_t kInterfaceVersion = kCommunicatorInterface;

  virtual ~CommBackend();
  /// The guarantees of the backend; see [C1].
  virtual CommTraits traits() const = 0;
  /// Every reason why it cannot serve the run, or none. A reason that concerns the backend's option NAME has the key
  /// "comm.NAME". Called before any rank is started.
  virtual Refusals supports(const CommRequest& request) const = 0;
  /// Called before the first join(). The device outlives the backend.
  virtual void start(Device& device) = 0;
  /// Joins a group of at least two members; all of them must call it. Throws Error with the missing members at the
  /// deadline. The store outlives the communicator.
  virtual std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) = 0;
};

} // namespace triax

// Contract
//
// Life of a backend and its communicators
//
// [C1] traits() and supports() may be called at any time after the constructor, and give the same answer each time.
//      A backend that has joined no group can be started and destroyed: a group of one member is never joined.
// [C2] join() returns when all members of the group have called it, and gives a communicator with the group's size and
//      this member's index. Members join their groups in one order.
// [C3] join() throws Error at its deadline, and its text names the ranks that are missing; the members that come later
//      get an error, too. It runs the progress loop, and ends when the rank is aborted. Only in the first join() of a
//      process may a library that initializes all processes together (MPI) wait longer.
// [C4] A group may be joined again, while earlier communicators of it exist or after they have ended. The k-th join of
//      a member matches the k-th of the others, and keys in the store differ for each group and each join.
// [C5] Groups are independent: calls of one group neither match nor wait for calls of another, and a rank may have
//      calls of all its groups in flight.
//
// Posts
//
// [C6] A post returns without waiting for other members, and its event does not fire inside the call. Work::action is
//      the action that was given. Only the first transfer between two members may wait for the peer's post, if a
//      library connects them then (NCCL).
// [C7] A call begins when all earlier items of its stream have finished; until then it reads and writes no buffer.
// [C8] Later items of the stream begin when the call is complete. When an event fires, the buffers hold the result, and
//      the communicator accesses them no more.
// [C9] The k-th post of a collective by one member matches the k-th by the others, on whatever streams they are:
//      the order of posts counts, not of execution.
// [C10] Any number of calls may be in flight.
// [C11] A communicator adds itself to its device as a progress source, and removes itself. Calls advance while their
//       members run the progress loop, and do not need the members that take no part in them.
// [C12] pending() reports the last posted call until that is complete.
// [C13] In the steady state, posts and the progress loop do not allocate.
//
// Collectives
//
// [C14] all_reduce gives the same bits to all members; `in` and `out` may be the same view.
// [C15] reduce_scatter gives member i part i of the reduction; `out` may be part i of `in`.
// [C16] all_gather gives the parts in the order of the group; `in` may be this member's part of `out`.
// [C17] all_to_all gives part i of `in` to member i, as part number rank() of its `out`. It is never in place.
// [C18] broadcast gives the view of the root to all members. Every member may be the root.
// [C19] A call without elements completes as any other. Its views may have null data; all other views have data,
//       because a dry run uses communicators of the engine.
// [C20] Sums and maxima are exact if every partial result is exact in the type. Integers wrap. bf16 and f16 are added
//       in fp32 and rounded once, if Reduction is rank_order. u8 moves, but cannot be reduced.
// [C21] Reduction::rank_order: a sum has the bits of ((x0 + x1) + x2) + ... in the order of the group.
// [C22] Reduction::rank_order and fixed: repeated calls give equal bits, whatever else is in flight.
//
// Transfers
//
// [C23] On an edge, which is (from, to, channel), the k-th posted send matches the k-th posted receive, on whatever
//       streams they are. Channels are numbered from 0; with Order::tagged, there are at least 16.
// [C24] The transfers of one exchange() have no order among themselves, so a cycle of exchanges does not deadlock. An
//       exchange without transfers completes.
// [C25] Order::tagged: a transfer waits for no transfer of another edge. Order::channel and serial:
//       transfers run in the order of their posts, on an edge or on the device, and the verifier ensures that both ends
//       have one order.
// [C26] Send::buffered: a send of up to buffered_bytes completes although its receive is not posted.
//       Send::rendezvous: it may wait for the receive; a program may not rely on either.
// [C27] Exchanges and collectives of one group do not match each other, and may be in flight together.
//
// Counts
//
// [C28] stats().ops counts posts. bytes_out and bytes_in count payload that crosses between ranks: of transfers the
//       bytes of their views, of collectives payload_of(). An all_reduce of less than 64 KiB may count more.
// [C29] A post that is refused after an abort counts neither as an operation nor with its bytes.
//
// Failures
//
// [C30] After abort(), all pending and later calls of all members fail soon with one text, that of the first abort:
//       "rank 2 aborted group tensor.0: WHY". Any thread may call abort(), and it does not wait for other ranks.
// [C31] A post after the failure of the group does not throw: it returns an event that fails. barrier() throws.
// [C32] After a failure, queued calls also fail, before they reach the front of their stream.
// [C33] Members that post different collectives, or transfers of different size or type, fail with a text that names
//       both, as to_text(Collective) does ("all_reduce of 8 f32 (sum)") or by elements and type ("6 f32"), with their
//       ranks ("rank 0"). A send that is complete before its receive is posted stays complete; its group fails. This
//       does not hold for stream-ordered communicators.
// [C34] A communicator may be destroyed at any time. Members that wait for it fail with "rank 1 left group tensor.0".
//       What is queued on streams, a HostTask and the event, stays valid until the streams have dropped it. A call
//       whose stream is destroyed before it is complete fails its group (HostTask::dropped()).
// [C35] A communicator whose peer was killed ends its calls after abort(), and its destructor does not wait for the
//       peer.
// [C36] barrier() returns when all members have called it. At its deadline it throws Error with the ranks that are
//       missing ("rank 0"). It runs the progress loop, ends when the rank is aborted, and does not count time in which
//       the process is stopped.
