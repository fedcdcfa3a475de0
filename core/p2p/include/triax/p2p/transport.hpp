// SPDX-License-Identifier: Apache-2.0
// The interface of a communicator over messages to a library that matches sends with receives by tag (UCX, MPI). The
// library is of one rank, and is shared by all groups of the backend.
//
// Threads: the rank's main thread only. Ownership: outlives the groups; the library uses an operation's Request and
// buffer until the Request completes. Blocking: none, but for connect() and the destructor of an implementation.
// Errors: connect() throws; a lost endpoint aborts the groups that use it.
//
// The library may write into buffers only inside poll(). If an aborted group has operations in progress that cannot be
// cancelled (a large send whose receiver is gone), retire() therefore ends all polling: the buffers may be freed, and
// every group of this backend fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/device.hpp"
#include "triax/p2p/tags.hpp"

namespace triax::p2p {

struct Request;
class Staging;
class Transport;

/// Memory type of an operation's buffer.
enum class Side { host, device };

/// State of an operation.
enum class Status : std::uint8_t {
  ok,
  in_progress,
  cancelled,
  truncated, // a message that is longer than its receive
  failed,
};

/// Gets the completions of the operations that it posts.
class RequestOwner {
 public:
  virtual ~RequestOwner() = default;
  /// The request has completed or failed, inside poll(). May post more operations; must not poll.
  virtual void completed(Request& request) noexcept = 0;
};

/// Largest message of two segments, in bytes.
inline constexpr std::size_t kMaxTwoSegments = (std::size_t{32} << 10) + 256;

/// A part of a message, which has one or two that are sent as one.
struct Segment {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// An operation: in progress, or complete with a status.
struct Request {
  RequestOwner* owner = nullptr;
  void* handle = nullptr; // belongs to the implementation while the operation is in progress
  Transport* transport = nullptr;
  Status status = Status::ok;
  bool receives = false;
  int member = 0;            // peer, as a member of the group
  std::size_t length = 0;    // bytes received
  const char* why = nullptr; // reason of a failure; static storage
  Segment segments[2];       // what a send sends; valid until it completes
  /// Whether it is in progress.
  bool open() const noexcept { return handle != nullptr; }
};

/// A call that continues after one of its requests has completed.
class Runnable {
 public:
  /// Continues the call, inside poll().
  virtual void resume() noexcept = 0;

 protected:
  ~Runnable() = default;

 private:
  friend class Transport;
  Runnable* next_ = nullptr;
  bool listed_ = false;
};

/// A peer of the rank. Implementations derive from it.
struct Endpoint {
  virtual ~Endpoint() = default;
  const char* failure = nullptr; // static; null: none
};

/// A group, which is informed of what ends it.
class TransportUser {
 public:
  /// A peer was lost; the transport was retired. Inside poll() or retire().
  /// @{
  virtual void lost(const Endpoint& endpoint) noexcept = 0;
  virtual void retired(std::string_view why) noexcept = 0;
  /// @}

 protected:
  ~TransportUser() = default;
};

/// How many the library's tags can distinguish. Groups, members and channels are numbered from 0.
struct TagLimits {
  int groups = kMaxGroups, members = kMaxMembers, channels = kMaxChannels;
  /// Calls of a group in flight, of which several streams may post in any order. An exchange with several transfers of
  /// one edge counts once: it posts them in order.
  int exchanges = 1 << kNumberBits, collectives = 1 << kSequenceBits;
};

/// The library of one rank, as groups and calls use it. A backend derives from it.
class Transport : public ProgressSource {
 public:
  ~Transport() override;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // --- What an implementation says of itself.
  /// The plugin's name, for messages.
  virtual const char* plugin() const noexcept = 0;
  /// Where peers find this rank. May have any bytes.
  virtual const std::string& address() const noexcept = 0;
  /// Ranks with equal text are on one machine, as far as the library is concerned.
  virtual const std::string& host() const noexcept = 0;
  /// The limits of the library's tags.
  virtual TagLimits limits() const noexcept { return {}; }
  /// The endpoint for a peer's address; created once per address. Throws Error.
  virtual Endpoint& connect(std::string_view address, std::string_view host, int rank) = 0;
  /// True if the library transfers device memory itself. Otherwise it goes through staging(), if there is any.
  virtual bool direct() const noexcept { return false; }

  // --- For groups and calls.
  /// The device of the rank.
  Device& device() noexcept { return device_; }
  /// For device memory; null if the device is the host.
  Staging* staging() noexcept { return staging_.get(); }
  /// How memory is transferred; must be equal on all members.
  std::string_view memory_word() const noexcept { return !staging_ ? "host" : direct() ? "direct" : "staged"; }
  /// A group begins and ends to use the transport.
  /// @{
  void add_user(TransportUser& user) { users_.push_back(&user); }
  void remove_user(TransportUser& user) noexcept { std::erase(users_, &user); }
  /// @}

  /// Post an operation. A request that is not open() afterwards is already complete; its owner is not called. To an
  /// endpoint that has failed, nothing is sent: the request is `cancelled`, and `why` is the endpoint's failure.
  void send(Request& request, Endpoint& endpoint, Segment segment, Tag tag, Side side = Side::host) noexcept;
  /// Sends two segments of host memory as one message.
  void send(Request& request, Endpoint& endpoint, Segment first, Segment second, Tag tag) noexcept;
  /// Completes when its receive has matched; completes the connection, which might otherwise be made later.
  void send_sync(Request& request, Endpoint& endpoint, Segment segment, Tag tag) noexcept;
  /// Receives a message of `tag` into `data`, which has `bytes`.
  void receive(Request& request, Endpoint& from, void* data, std::size_t bytes, Tag tag,
               Side side = Side::host) noexcept;
  /// Completes at once an operation that can be cancelled: a receive that has not matched yet.
  void cancel(Request& request) noexcept;
  /// True if a message of a transfer has arrived for which no receive is posted, and whose tag differs from `tag` at
  /// most in the type (kAnyType); returns its tag and length.
  bool probe(Endpoint& from, Tag tag, Tag& found, std::size_t& bytes) noexcept;

  /// Progresses until nothing moves, or for a limited number of rounds; true if there was progress.
  bool poll() noexcept;
  void progress() noexcept override;
  /// Adds a call to the list of calls that continue in this poll.
  void make_ready(Runnable& runnable) noexcept;
  /// Counts calls that wait. Only then does the rank idle in the configured way.
  /// @{
  void begin_waiting() noexcept { ++waiting_; }
  void end_waiting() noexcept { --waiting_; }
  /// @}
  /// Counts calls with copies in progress. The library does not see their completion, so the rank must not sleep.
  /// @{
  void begin_copying() noexcept { ++copying_; }
  void end_copying() noexcept { --copying_; }
  /// @}

  /// Ends all use of operations and their buffers.
  void retire(std::string_view why) noexcept;
  /// Whether retire() was called.
  bool retired() const noexcept { return retired_; }
  /// After an abort, the destructor does not wait for messages to leave.
  void skip_flush() noexcept { skips_flush_ = true; }
  /// Whether the destructor does not wait for messages to leave.
  bool skips_flush() const noexcept { return skips_flush_ || retired_; }
  /// Keeps an object that operations in progress refer to, until the transport is destroyed.
  void keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

 protected:
  explicit Transport(Device& device);

  // --- What an implementation provides.
  /// Post an operation: sets request.handle if it is in progress, else calls complete().
  /// @{
  virtual void post_send(Request& request, Endpoint& endpoint, Tag tag, Side side, bool sync) noexcept = 0;
  virtual void post_receive(Request& request, Endpoint& from, void* data, std::size_t bytes, Tag tag,
                            Side side) noexcept = 0;
  virtual void post_cancel(Request& request) noexcept = 0;
  /// @}
  /// As probe().
  virtual bool find(Endpoint& from, Tag tag, Tag& found, std::size_t& bytes) noexcept = 0;
  /// One round of the library's progress; true if something moved.
  virtual bool advance() noexcept = 0;
  /// retire() has been called: the library must not be called any more, because buffers may be freed.
  virtual void abandon() noexcept {}
  /// There was no progress, or there was some, while calls wait.
  /// @{
  virtual void idle() noexcept {}
  virtual void wake() noexcept {}
  /// @}
  /// How often to poll again before progress() returns.
  virtual int extra_polls() const noexcept { return 0; }

  /// For implementations. complete() calls the owner, unless the request is being posted.
  void complete(Request& request, Status status, std::size_t length = 0, const char* why = nullptr) noexcept;
  /// The peer does not answer any more: complete its sends as failed. Leave its receives in progress: the groups cancel
  /// them, or find that the peer has left.
  void lose(Endpoint& endpoint, const char* why) noexcept;
  /// For a device that is not the host. Allocates pinned memory, and memory of the device for direct transfers.
  Staging& make_staging(std::size_t bytes, std::size_t device_bytes);
  /// The stream of uploads, in whose order the library accesses the device.
  Stream& staging_stream() noexcept;

 private:
  void send(Request& request, Endpoint& endpoint, Segment first, Segment second, Tag tag, Side side,
            bool sync) noexcept;
  template <class Post>
  void begin(Request& request, bool receives, const Post& post) noexcept;
  bool run_ready() noexcept;

  Device& device_;
  std::unique_ptr<Staging> staging_;
  std::vector<TransportUser*> users_;
  Runnable* first_ready_ = nullptr;
  Runnable** last_ready_ = &first_ready_;
  const Request* posting_ = nullptr; // inside the call that posts it
  int waiting_ = 0, copying_ = 0;
  bool retired_ = false, skips_flush_ = false;
  std::vector<std::shared_ptr<void>> kept_;
};

} // namespace triax::p2p
