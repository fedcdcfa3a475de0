// SPDX-License-Identifier: Apache-2.0
// Communicators: a CommBackend is a plugin's object, one per rank; it joins one Communicator per process group.
//
// Threads: the rank's main thread uses a backend and its communicators; abort() and pending() may be called by any
// thread. Ownership: a backend must outlive its communicators; buffers belong to the transport from the post until the
// Work has fired. Blocking: only join(), barrier() and Device::wait() block, until their deadline. Errors: Error.
//
// Calls are posts: they never block and never complete inside the call. Posts to one (group, channel) are FIFO. All
// members of a group post the same collectives in the same order. An edge is (peer, channel): on a directed edge the
// k-th send matches the k-th receive. The transfers of one exchange() have no order among themselves. All views are
// contiguous. all_reduce gives the same bits on every rank; CommTraits::Reduction says whether also in every run.
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

inline constexpr std::uint32_t kCommunicatorInterface = 5;

/// The key-value store of the control plane, as communicators use it. Values are bytes. get() blocks.
class TRIAX_API Store {
 public:
  virtual ~Store();
  virtual void set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key exists. Throws Error with the key at the deadline.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;
  /// Adds to a counter (0 if new) and returns the new value.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
};

enum class Reduce : std::uint8_t { sum, max };

/// A collective, as data. Equal on all members of the group that post it.
struct Collective {
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };
  Kind kind = Kind::all_reduce;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum; // of all_reduce and reduce_scatter
  std::int32_t root = 0;       // of broadcast
  std::int64_t elements = 0;   // of `in`
  bool reduces() const noexcept { return kind == Kind::all_reduce || kind == Kind::reduce_scatter; }
  bool operator==(const Collective&) const = default;
};
TRIAX_API const char* name_of(Collective::Kind kind) noexcept; // "all_reduce"
TRIAX_API std::string to_text(const Collective& collective);   // "all_reduce of 12 f32 (sum)"

enum class Direction { send, receive };

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

class TRIAX_API Communicator : public ProgressSource, public Extensible {
 public:
  explicit Communicator(Group group) : group_(std::move(group)) {}
  ~Communicator() override;

  const Group& group() const noexcept { return group_; }
  int size() const noexcept { return group_.size(); }
  int index() const noexcept { return group_.index; }

  /// Posts a collective; the functions below describe each kind. `collective.dtype` and `elements` are those of `in`;
  /// a broadcast has one view as `in` and `out`.
  Work post(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
            ActionId action = kNoAction);

  /// out = reduction of `in` over the group, of any type but u8. Equal shapes; in place allowed.
  Work all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                  ActionId action = kNoAction);
  /// in: n*size elements; out: n elements, the reduction of the members' parts number index().
  Work reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                      ActionId action = kNoAction);
  /// in: n elements; out: n*size, in the order of the group. In place: in is this member's part of out.
  Work all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  /// in and out: n*size elements; part i of in goes to member i.
  Work all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  Work broadcast(const TensorView& view, int root, Stream& stream, ActionId action = kNoAction);
  Work exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action = kNoAction);

  /// Items that are added to `stream` later start after the work. Does not block.
  void wait(const Work& work, Stream& stream) { stream.wait(work.event); }

  virtual void barrier(Deadline deadline) = 0;
  /// Makes all pending and later calls of this member fail with `why`, soon. Any thread.
  virtual void abort(std::string_view why) noexcept = 0;
  const CommStats& stats() const noexcept { return stats_; }
  /// For hang reports. Any thread.
  PendingCall pending() const noexcept;

 protected:
  /// Called with checked arguments. The states of the returned events
  /// live as long as the communicator, or as the call's stream if that is destroyed earlier.
  virtual Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                             ActionId action) = 0;
  virtual Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) = 0;

  /// The payload of a member in a collective that sends each element once: to the member that reduces it, and its
  /// result to each other member. A ring moves as much.
  Payload payload_of(const Collective& collective) const noexcept { return payload_of(collective, index()); }
  Payload payload_of(const Collective& collective, int member) const noexcept;
  /// The result of a post after the group has failed: an event that fails with `reason`. The operation is not counted.
  Work failed_post(const std::string& reason, ActionId action);
  /// Backends count bytes; the public functions count operations.
  void count(Payload bytes) noexcept {
    stats_.bytes_out += bytes.out;
    stats_.bytes_in += bytes.in;
  }

 private:
  Work posted(const char* name, const Work& work) noexcept;

  Group group_;
  CommStats stats_;
  HostEvent failed_;   // for posts after the group has failed
  Event failed_event_; // armed at the first of them
  std::atomic<const char*> last_name_{nullptr};
  std::atomic<EventState*> last_state_{nullptr};
  std::atomic<std::uint64_t> last_generation_{0};
  std::atomic<ActionId> last_action_{kNoAction};
};

/// What the verifier may assume of a backend: its guarantees.
struct CommTraits {
  enum class Order { serial, channel, tagged }; // one order for the device | per channel of an edge | no order
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

/// What a run needs from a backend.
struct CommRequest {
  DeviceKind device = DeviceKind::host;
  std::vector<DType> dtypes;
  std::vector<std::string> axes; // the axes that it serves
  bool ranks_are_threads = false;
  /// Whether to check what this machine has: its network devices, transports and environment. If false, the run is
  /// only planned here and may be started elsewhere.
  bool on_this_machine = true;
};

class TRIAX_API CommBackend : public Extensible {
 public:
  using Interface = CommBackend;
  static constexpr const char* kKind = "communicator";
  static constexpr std::uint32_t kInterfaceVersion = kCommunicatorInterface;

  virtual ~CommBackend();
  virtual CommTraits traits() const = 0;
  virtual Refusals supports(const CommRequest& request) const = 0;
  /// Called before the first join(). The device outlives the backend.
  virtual void start(Device& device) = 0;
  /// Joins a group of at least two members; all of them must call it. Throws Error with the missing members at the
  /// deadline. The store outlives the communicator.
  virtual std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) = 0;
};

} // namespace triax
