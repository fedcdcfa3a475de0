// SPDX-License-Identifier: Apache-2.0
// One posted call of one member, as a host task: posts operations of the transport, continues when one of them
// completes, and fires its event when all are complete, or fails it after an abort.
//
// Ownership: the communicator's pool, which reuses the call when it has finished. Blocking: only dropped(), for a
// bounded time, until the operations are cancelled or complete.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "peer_endpoints.hpp"

namespace triax::p2p {

struct StagedMessage;

class Call : public HostTask, public RequestOwner, public Runnable {
 public:
  explicit Call(PeerEndpoints& endpoints) : endpoints_(endpoints) {}

  bool advance() noexcept final;
  /// The stream is destroyed before the call is complete: aborts the group. After it returns, nothing uses this
  /// member's buffers.
  void dropped() noexcept final;
  void resume() noexcept final;
  void completed(Request& request) noexcept final;
  /// Call it after an abort only. Fails the event as soon as no operation is in progress; true if it has failed.
  bool fail_when_quiet() noexcept;
  /// The stream or the communicator is destroyed: finishes the call if it is complete, else aborts the group and fails
  /// it.
  void end() noexcept;
  bool queued() const noexcept { return queued_; }
  bool reusable() const noexcept { return !queued_ && !failed_; }
  /// For a communicator that is destroyed while the call is queued: keeps the pool alive until the stream drops the
  /// call.
  void keep_alive(std::shared_ptr<void> pool) { pool_ = std::move(pool); }

 protected:
  Event begin();
  /// Posts the first operations.
  virtual void launch() noexcept = 0;
  /// Advances the call; true when complete. Not called after an abort.
  virtual bool run() noexcept = 0;
  /// Called when no operation has completed for a long time: looks for messages that can never match.
  virtual void check_messages() noexcept {}
  virtual std::size_t requests() const noexcept = 0;
  virtual Request& request_at(std::size_t index) noexcept = 0;

  /// After one of these, the request is in progress or already complete.
  void send(Request& request, int member, const void* data, std::size_t bytes, Tag tag,
            Side side = Side::host) noexcept;
  void send(Request& request, int member, const void* first, std::size_t first_bytes, const void* second,
            std::size_t second_bytes, Tag tag) noexcept;
  void receive(Request& request, int member, void* data, std::size_t bytes, Tag tag, Side side = Side::host) noexcept;
  int in_progress() const noexcept { return in_progress_; }

  // For device memory (staged.cpp). Copies are in progress until copies_ended(), which is polled before run() is
  // called.
  Staging* staging() noexcept { return endpoints_.transport().staging(); }
  void download(Event& event, std::byte* buffer, const std::byte* device, std::size_t bytes) noexcept;
  void upload(Event& event, std::byte* device, const std::byte* buffer, std::size_t bytes) noexcept;
  void sum_on_device(Event& event, DType dtype, std::span<const std::byte* const> sources, std::byte* sums,
                     std::byte* out, std::int64_t elements) noexcept;
  void copy_on_device(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  /// True if a copy has completed; aborts the group if it failed.
  bool arrived(const Event& copy) noexcept;
  bool copies_ended() noexcept;
  /// Advance a message; true when all of it is posted (push), or received and being copied (pull).
  bool push(StagedMessage& flow) noexcept;
  bool pull(StagedMessage& flow) noexcept;
  /// A message does not have the length of its receive: it has `bytes`, or `more` than the receive.
  virtual void other_length(const StagedMessage& flow, std::size_t bytes, bool more) noexcept = 0;

  PeerEndpoints& endpoints_;

 private:
  template <class Copy>
  bool begin_copy(Event& event, Copy copy) noexcept;
  bool whole(StagedMessage& flow) noexcept;
  void started(Request& request) noexcept;
  void check_status(const Request& request) noexcept;
  void check_peers() noexcept;
  void finish() noexcept;
  /// May destroy this object.
  void forget_queue() noexcept;

  HostEvent event_;
  std::shared_ptr<void> pool_;
  Event last_download_, last_upload_;
  bool copying_ = false;
  int in_progress_ = 0;     // requests in progress
  unsigned idle_polls_ = 0; // polls without progress
  bool queued_ = false, launched_ = false, complete_ = false, cancelled_ = false, failed_ = false, finished_ = false;
};

} // namespace triax::p2p
