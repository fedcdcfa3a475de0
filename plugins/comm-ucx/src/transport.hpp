// SPDX-License-Identifier: Apache-2.0
// UCX of one rank: a context, one worker, and one endpoint per peer, shared by all groups of the backend.
//
// Threads: the rank's main thread only; UCX's thread mode is "single". Ownership: outlives the groups; UCX uses an
// operation's Request and buffer until the Request completes. Blocking: only the destructor, for a bounded time, so
// that sent messages leave. Errors: the constructor and connect() throw; a lost endpoint aborts the groups that use it.
//
// UCX writes into buffers only inside poll(). If an aborted group has operations in progress that UCX cannot cancel (a
// large send whose receiver is gone), retire() therefore ends all polling: the buffers may be freed, and every group of
// this backend fails.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "idle_strategy.hpp"
#include "settings.hpp"
#include "staging.hpp"
#include "tags.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"
#include "ucx_memory.hpp"

namespace triax::comm_ucx {

struct Request;

/// Memory type of an operation's buffer.
enum class Side { host, device };

/// Gets the completions of the operations that it posts.
class RequestOwner {
 public:
  virtual ~RequestOwner() = default;
  /// The request has completed or failed, inside poll(). May post more operations; must not poll.
  virtual void completed(Request& request) noexcept = 0;
};

/// A UCX operation: in progress, or complete with a status.
struct Request {
  RequestOwner* owner = nullptr;
  void* handle = nullptr; // UCX's request while it is in progress
  ucs_status_t status = UCS_OK;
  std::size_t length = 0; // bytes received
  int member = 0;         // peer, as a member of the group
  bool receives = false;
  bool posting = false;   // inside the call that posts it
  ucp_dt_iov_t pieces[2]; // of a send in two pieces; UCX reads them until it completes
  bool open() const noexcept { return handle != nullptr; }
};

/// A call that continues after one of its requests has completed.
class Runnable {
 public:
  virtual void resume() noexcept = 0;

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
  ucs_status_t status = UCS_OK; // reason of its failure
  class Transport* transport = nullptr;
};

/// A group, which is informed of what ends it.
class TransportUser {
 public:
  virtual void lost(const Endpoint& endpoint) noexcept = 0;
  virtual void retired(std::string_view why) noexcept = 0;

 protected:
  ~TransportUser() = default;
};

class Transport final : public ProgressSource {
 public:
  /// Checks that UCX can be opened here with these settings; `direct`: and that it transfers device memory itself.
  static Refusals supports(const Settings& settings, bool direct);

  /// `settings` must outlive it.
  Transport(Device& device, const Settings& settings, Log& log);
  ~Transport() override;

  /// Logs the UCX_ variables that UCX does not know: once in a process, on the rank that logs.
  void report_unused_variables();

  Device& device() noexcept { return device_; }
  /// For device memory; null if the device is the host.
  Staging* staging() noexcept { return staging_ ? &*staging_ : nullptr; }
  /// True if UCX transfers device memory directly.
  bool direct() const noexcept { return ucx_memory_.has_value(); }
  /// How memory is transferred; must be equal on all members.
  std::string_view memory_word() const noexcept { return !staging_ ? "host" : ucx_memory_ ? "direct" : "staged"; }
  const std::string& address() const noexcept { return address_; }
  /// Ranks with equal text can reach each other through shared memory.
  const std::string& host() const noexcept { return host_; }
  /// The endpoint for a worker's address; created once per address.
  Endpoint& connect(std::string_view address, std::string_view host, int rank);
  void add_user(TransportUser& user) { users_.push_back(&user); }
  void remove_user(TransportUser& user) noexcept { std::erase(users_, &user); }

  /// Post an operation. A request that is not open() afterwards is already complete; its owner is not called.
  void send(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag,
            Side side = Side::host) noexcept;
  /// Sends two pieces as one message.
  void send(Request& request, Endpoint& endpoint, const void* first, std::size_t first_bytes, const void* second,
            std::size_t second_bytes, Tag tag) noexcept;
  void receive(Request& request, void* data, std::size_t bytes, Tag tag, Side side = Side::host) noexcept;
  /// Completes when its receive has matched; completes the connection, which UCX would otherwise do later.
  void send_sync(Request& request, Endpoint& endpoint, const void* data, std::size_t bytes, Tag tag) noexcept;
  /// Completes at once an operation that UCX can cancel: a receive that has not matched yet.
  void cancel(Request& request) noexcept;
  /// True if an unexpected message matches tag and mask; returns its tag and length.
  bool probe(Tag tag, Tag mask, Tag& found, std::size_t& bytes) noexcept;

  /// Progresses UCX until nothing moves, or for a limited number of rounds; true if there was progress.
  bool poll() noexcept;
  void progress() noexcept override;
  /// Adds a call to the list of calls that continue in this poll.
  void make_ready(Runnable& runnable) noexcept;
  /// Counts calls that wait. Only then does the rank idle in the configured way.
  void begin_waiting() noexcept { ++waiting_; }
  void end_waiting() noexcept { --waiting_; }
  /// Counts calls with copies in progress. UCX does not see their completion, so the rank must not sleep.
  void begin_copying() noexcept { ++copying_; }
  void end_copying() noexcept { --copying_; }

  /// Ends all use of UCX operations and their buffers.
  void retire(std::string_view why) noexcept;
  bool retired() const noexcept { return retired_; }
  /// After an abort, the destructor does not wait for messages to leave.
  void skip_flush() noexcept { skips_flush_ = true; }
  bool skips_flush() const noexcept { return skips_flush_; }
  /// Keeps an object that operations in progress refer to, until the worker is destroyed.
  void keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

 private:
  void open();
  void prepare_device_memory();
  void close() noexcept;
  void begin(Request& request, void* result) noexcept;
  static void prepare(Request& request, bool receives) noexcept;
  bool run_ready() noexcept;
  void endpoint_failed(Endpoint& endpoint, ucs_status_t status) noexcept;
  static void on_sent(void* handle, ucs_status_t status, void* user_data);
  static void on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data);

  Device& device_;
  Log& log_;
  const Settings& settings_;
  std::string address_, host_;
  std::optional<Staging> staging_;
  std::optional<UcxMemory> ucx_memory_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<TransportUser*> users_;
  Runnable* first_ready_ = nullptr;
  Runnable** last_ready_ = &first_ready_;
  IdleStrategy idling_;
  int waiting_ = 0, copying_ = 0;
  bool retired_ = false, skips_flush_ = false;
  std::vector<std::shared_ptr<void>> kept_;
};

} // namespace triax::comm_ucx
