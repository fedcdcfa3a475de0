// Communicators: a CommBackend is a plugin's object, one per rank; it joins one Communicator per process group.
//
// Threads: a backend and its communicators are used by the rank's main thread only, but for abort(), which may come
// from any thread. Ownership: a backend must outlive its communicators; buffers belong to the transport from the post
// until the Work has fired. Blocking: only join(), barrier() and wait(Work, Deadline) block, and they keep their
// deadline.
//
// Calls are posts: they never block and never complete inside the call. Posts to one (group, channel) are FIFO; members
// of a group post the same collectives in the same order; an edge is (peer, channel), and on a directed edge the k-th
// send meets the k-th receive. exchange() posts a set without order among its members. All views are contiguous.
// all_reduce gives the same bits on every rank and in every run.
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
#include "triax/layout.hpp"
#include "triax/tensor.hpp"

namespace triax {

inline constexpr std::uint32_t kCommunicatorInterface = 3;

/// The control plane's key-value store, as communicators see it. Values are bytes.
class TRIAX_API Store {
 public:
  virtual ~Store();
  virtual void set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key is there; throws Error naming the key at the deadline.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;
  /// Adds to a counter (0 when new) and returns the new value.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
};

enum class Reduce { sum, max };

enum class Direction { send, receive };

struct Transfer {
  Direction direction = Direction::send;
  int peer = 0;    // index in the group
  int channel = 0; // FIFO within (peer, channel)
  TensorView view;
};

/// Totals since the communicator was joined. Bytes are payload that crossed to or from another rank.
struct CommStats {
  std::uint64_t ops = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t bytes_in = 0;
};

/// The call posted last, where it is still under way.
struct PendingCall {
  const char* name = nullptr; // "all_reduce"; null: it has completed
  ActionId action = kNoAction;
};

class TRIAX_API Communicator : public ProgressSource {
 public:
  explicit Communicator(Group group) : group_(std::move(group)) {}
  ~Communicator() override;

  const Group& group() const noexcept { return group_; }
  int size() const noexcept { return group_.size(); }
  int index() const noexcept { return group_.index; }

  /// out = reduction over the group of in; equal shapes; in place allowed.
  Work all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                  ActionId action = kNoAction);
  /// in: n*size elements; out: this member's n, the reduction of everybody's index-th part.
  Work reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                      ActionId action = kNoAction);
  /// in: n elements; out: n*size, in the order of the group. In place: in is this member's part of out.
  Work all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  /// in and out: n*size elements; part i of in goes to member i.
  Work all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action = kNoAction);
  Work broadcast(const TensorView& view, int root, Stream& stream, ActionId action = kNoAction);
  Work exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action = kNoAction);

  /// Later items of `stream` start after the work. Does not block.
  void wait(const Work& work, Stream& stream) { stream.wait(work.event); }

  virtual void barrier(Deadline deadline) = 0;
  /// Makes every pending and later call of this member fail with `why`, soon. Any thread.
  virtual void abort(std::string_view why) noexcept = 0;
  const CommStats& stats() const noexcept { return stats_; }
  /// What a report of a hang asks. Any thread.
  PendingCall pending() const noexcept;
  /// A power that this interface does not have, by name; null where the backend lacks it.
  virtual void* extension(std::string_view id);

 protected:
  /// The arguments have been checked. A group of one still gets its calls: they copy. The states of the events returned
  /// live as long as the communicator, or as the stream of the call where that is shorter.
  virtual Work do_all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                             ActionId action) = 0;
  virtual Work do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                 ActionId action) = 0;
  virtual Work do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) = 0;
  virtual Work do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) = 0;
  virtual Work do_broadcast(const TensorView& view, int root, Stream& stream, ActionId action) = 0;
  virtual Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) = 0;
  /// Backends count the bytes they move; the public calls count operations.
  CommStats stats_;

 private:
  Work posted(const char* name, const Work& work) noexcept;

  Group group_;
  std::atomic<const char*> last_name_{nullptr};
  std::atomic<EventState*> last_state_{nullptr};
  std::atomic<std::uint64_t> last_generation_{0};
  std::atomic<ActionId> last_action_{kNoAction};
};

/// What the proof of a program may assume of a backend.
struct CommTraits {
  enum class Order { serial, channel, tagged }; // one order per device | per channel | by tag
  enum class Send { rendezvous, buffered };     // a send completes with its receive | into a buffer
  enum class Post { nonblocking, blocking };
  enum class Reduction { rank_order, fixed, unspecified }; // how a sum's bits come about
  enum class Ranks { one_per_process, many_per_process, same_process };
  Order order = Order::tagged;
  Send send = Send::rendezvous;
  std::size_t buffered_bytes = 0; // of a buffered send
  Post post = Post::nonblocking;
  Reduction reduction = Reduction::unspecified;
  Ranks ranks = Ranks::one_per_process;
  bool stream_ordered = false; // on CUDA, calls run on the native stream alone: a graph can hold them
};

/// What a run asks of a backend.
struct CommRequest {
  DeviceKind device = DeviceKind::host;
  std::vector<DType> dtypes;
  std::vector<std::string> axes; // the axes it is to serve
  bool ranks_are_threads = false;
};

class TRIAX_API CommBackend {
 public:
  using Interface = CommBackend;
  static constexpr const char* kKind = "communicator";
  static constexpr std::uint32_t kInterfaceVersion = kCommunicatorInterface;

  virtual ~CommBackend();
  virtual CommTraits traits() const = 0;
  virtual Support supports(const CommRequest& request) const = 0;
  /// Before the first join. The device outlives the backend.
  virtual void start(Device& device) = 0;
  /// Collective over the group; throws Error naming who is missing at the deadline. The store outlives what is joined.
  virtual std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) = 0;
};

} // namespace triax
