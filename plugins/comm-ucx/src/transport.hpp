// One rank's UCX: a context, one worker, and an endpoint for each rank it talks to, shared by all groups of the
// backend.
//
// Threads: the rank's main thread only; UCX's thread mode is "single". Ownership: outlives the groups; an operation's
// Request and buffer are UCX's until the Request has ended. Blocking: never, but for the destructor, which gives what
// was sent a bounded time to leave. Errors: start() and connect() throw; a lost endpoint aborts the groups that need
// it.
//
// UCX writes into buffers only inside poll(). So once a group has been aborted with operations under way that UCX
// cannot take back (a large send whose receiver is gone), retire() ends all polling: the buffers may go, and every
// group of this backend fails.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "idling.hpp"
#include "settings.hpp"
#include "staging.hpp"
#include "tags.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"
#include "wire.hpp"

namespace comm_ucx {

using namespace triax;

struct Request;

/// What memory an operation is told of.
enum class Side { host, device };

/// Who posted an operation.
class RequestOwner {
 public:
  virtual ~RequestOwner() = default;
  /// It has ended, well or not, inside a poll. May post more; must not poll.
  virtual void ended(Request& request) noexcept = 0;
};

/// An operation of UCX: under way, or ended with a status.
struct Request {
  RequestOwner* owner = nullptr;
  void* handle = nullptr; // while under way
  ucs_status_t status = UCS_OK;
  std::size_t length = 0; // of what was received
  int member = 0;         // of the group: whom with
  bool receives = false;
  bool posting = false;   // inside the call that posts it
  ucp_dt_iov_t pieces[2]; // of a send in two pieces; UCX reads them until the send has ended
  bool open() const noexcept { return handle != nullptr; }
};

/// A call with something to do after one of its requests has ended.
class Runnable {
 public:
  virtual void go_on() noexcept = 0;

 protected:
  ~Runnable() = default;

 private:
  friend class Transport;
  Runnable* next_ = nullptr;
  bool listed_ = false;
};

struct Endpoint {
  std::string address;
  ucp_ep_h handle = nullptr;
  ucs_status_t status = UCS_OK; // why it failed
  class Transport* transport = nullptr;
};

/// A group that is told what ends it.
class TransportUser {
 public:
  virtual void lost(const Endpoint& endpoint) noexcept = 0;
  virtual void retired(std::string_view why) noexcept = 0;

 protected:
  ~TransportUser() = default;
};

class Transport final : public ProgressSource {
 public:
  /// Whether UCX carries device memory itself here.
  static Support supports_direct(const Settings& settings);

  Transport(Device& device, const Settings& settings, Log& log);
  ~Transport() override;

  Device& device() noexcept { return device_; }
  /// For device memory; null where the device is the host.
  Staging* staging() noexcept { return staging_ ? &*staging_ : nullptr; }
  /// UCX carries device memory itself.
  bool direct() const noexcept { return wire_.has_value(); }
  /// How memory goes, in a word: members must agree.
  std::string_view memory_word() const noexcept { return !staging_ ? "host" : wire_ ? "direct" : "staged"; }
  const std::string& address() const noexcept { return address_; }
  /// Ranks with the same text can reach each other through memory.
  const std::string& host() const noexcept { return host_; }
  /// The endpoint for a worker's address; made once.
  Endpoint& connect(std::string_view address, std::string_view host, int rank);
  void add_user(TransportUser& user) { users_.push_back(&user); }
  void remove_user(TransportUser& user) noexcept { std::erase(users_, &user); }

  /// Post. A request that is not open() afterwards has ended already, and its owner is not told.
  void send(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag,
            Side side = Side::host) noexcept;
  /// Two pieces as one message.
  void send(Request& request, Endpoint& endpoint, const void* first, std::size_t first_bytes, const void* second,
            std::size_t second_bytes, Tag tag) noexcept;
  void receive(Request& request, void* data, std::size_t bytes, Tag tag, Side side = Side::host) noexcept;
  /// Ends when its receive has met it; makes all of the connection that UCX would make later else.
  void send_met(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag) noexcept;
  /// Ends at once what UCX can take back: receives that nothing has met yet.
  void cancel(Request& request) noexcept;
  /// Whether a message that fits tag and mask is waiting for its receive; its tag and length.
  bool waiting(Tag tag, Tag mask, Tag& found, std::size_t& bytes) noexcept;

  /// Moves on until nothing moves (or for long enough); true if anything did.
  bool poll() noexcept;
  void progress() noexcept override;
  /// Puts a call on the list of those that go on in this poll.
  void make_ready(Runnable& runnable) noexcept;
  /// Calls that wait: only they make the rank idle in its own way.
  void begin_waiting() noexcept { ++waiting_; }
  void end_waiting() noexcept { --waiting_; }
  /// Calls with copies under way, of whose end UCX knows nothing: nobody sleeps then.
  void begin_copying() noexcept { ++copying_; }
  void end_copying() noexcept { --copying_; }

  /// No operation is touched any more, no buffer read or written.
  void retire(std::string_view why) noexcept;
  bool retired() const noexcept { return retired_; }
  /// Once something was aborted, nobody waits for anybody at the end.
  void hurry() noexcept { hurried_ = true; }
  bool hurried() const noexcept { return hurried_; }
  /// Keeps what operations under way refer to, until the worker has gone.
  void keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

 private:
  void open(const Settings& settings);
  void read_address();
  void prepare_device_memory(const Settings& settings);
  void close() noexcept;
  void begin(Request& request, void* result) noexcept;
  static void prepare(Request& request, bool receives) noexcept;
  bool run_ready() noexcept;
  void endpoint_failed(Endpoint& endpoint, ucs_status_t status) noexcept;
  static void on_sent(void* handle, ucs_status_t status, void* user_data);
  static void on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data);

  Device& device_;
  Log& log_;
  std::string address_, host_;
  bool memory_; // shared memory is not ruled out
  std::optional<Staging> staging_;
  std::optional<Wire> wire_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<TransportUser*> users_;
  Runnable* first_ready_ = nullptr;
  Runnable** last_ready_ = &first_ready_;
  Idling idling_;
  int waiting_ = 0, copying_ = 0;
  bool retired_ = false, hurried_ = false;
  std::vector<std::shared_ptr<void>> kept_;
};

} // namespace comm_ucx
