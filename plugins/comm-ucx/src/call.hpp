// One posted call of one member: a host task that posts operations of UCX, goes on when one of them has ended, and
// fires its event when all is done, or fails it after an abort.
//
// Threads: the member's main thread. Ownership: the member's pool; used again after it has finished. Blocking: never;
// a call that goes with its stream takes its operations back first, in bounded time.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "links.hpp"

namespace comm_ucx {

struct Flow;

class Call : public HostTask, public RequestOwner, public Runnable {
 public:
  explicit Call(Links& links) : links_(links) {}

  bool advance() noexcept final;
  /// Its stream goes before it is complete: the group ends, and this member's buffers are its own when this returns.
  void dropped() noexcept final;
  void go_on() noexcept final;
  void ended(Request& request) noexcept final;
  /// Fails the event once no operation is under way; true when it has fired. After an abort only.
  bool fail_when_quiet() noexcept;
  /// Its stream or its communicator goes: completes what is complete, else ends the group and fails.
  void end_now() noexcept;
  bool queued() const noexcept { return queued_; }
  bool reusable() const noexcept { return !queued_ && !failed_; }
  /// For a member that goes while the call is still queued: the pool lives until the stream has let go of it.
  void keep_alive(std::shared_ptr<void> pool) { pool_ = std::move(pool); }

 protected:
  Event begin();
  /// Posts the first operations.
  virtual void launch() noexcept = 0;
  /// Goes on; true when complete. Not called again after an abort.
  virtual bool run() noexcept = 0;
  /// Nothing has ended for a long time: looks for what cannot come any more.
  virtual void examine() noexcept {}
  virtual std::size_t requests() const noexcept = 0;
  virtual Request& request_at(std::size_t index) noexcept = 0;

  /// After one of these the request is under way, or has ended already.
  void send(Request& request, int member, const void* data, std::size_t bytes, Tag tag,
            Side side = Side::host) noexcept;
  void send(Request& request, int member, const void* first, std::size_t first_bytes, const void* second,
            std::size_t second_bytes, Tag tag) noexcept;
  void receive(Request& request, int member, void* data, std::size_t bytes, Tag tag, Side side = Side::host) noexcept;
  int under_way() const noexcept { return under_way_; }

  // Of device memory (staged.cpp). Copies are under way until copies_ended(); the pump asks, and calls run() then.
  Staging* staging() noexcept { return links_.transport().staging(); }
  void download(Event& event, std::byte* place, const std::byte* device, std::size_t bytes) noexcept;
  void upload(Event& event, std::byte* device, const std::byte* place, std::size_t bytes) noexcept;
  void sum_on_device(Event& event, DType dtype, std::span<const std::byte* const> sources, std::byte* sums,
                     std::byte* out, std::int64_t elements) noexcept;
  void copy_on_device(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  /// Whether a copy has ended; aborts the group where it failed.
  bool arrived(const Event& copy) noexcept;
  bool copies_ended() noexcept;
  /// Move a message on; true when all of it is posted, or has come and is being copied.
  bool push(Flow& flow) noexcept;
  bool pull(Flow& flow) noexcept;
  /// A message has another length than its receive: so many bytes, or `more`.
  virtual void other_length(const Flow& flow, std::size_t bytes, bool more) noexcept = 0;

  Links& links_;

 private:
  template <class Copy>
  bool begin_copy(Event& event, Copy copy) noexcept;
  bool whole(Flow& flow) noexcept;
  void started(Request& request) noexcept;
  void judge(const Request& request) noexcept;
  void look() noexcept;
  void finish() noexcept;
  /// May end this object's life.
  void forget_queue() noexcept;

  HostEvent event_;
  std::shared_ptr<void> pool_;
  Event last_download_, last_upload_;
  bool copying_ = false;
  int under_way_ = 0;       // requests
  unsigned idle_turns_ = 0; // of the pump
  bool queued_ = false, launched_ = false, complete_ = false, cancelled_ = false, failed_ = false, finished_ = false;
};

} // namespace comm_ucx
