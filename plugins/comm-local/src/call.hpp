// One posted call of one member: a host task that fires its event when the call is complete, or fails it after an
// abort.
//
// Threads: the member's main thread. Ownership: the member's pool; used again after it has finished. Blocking: never.
#pragma once

#include <memory>
#include <utility>

#include "hub.hpp"

namespace comm_local {

class Call : public HostTask {
 public:
  Call(Hub& hub, int member) : hub_(hub), member_(member) {}

  bool advance() noexcept final;
  /// Its stream goes before it is complete: the group ends, and nobody reads this member's buffers when this returns.
  void dropped() noexcept final;
  /// Fails the event once no member touches another's memory; true when it has fired. After an abort only.
  bool fail_when_quiet() noexcept;
  bool queued() const noexcept { return queued_; }
  bool reusable() const noexcept { return !queued_ && !failed_; }
  /// For a member that goes while the call is still queued: the pool lives until the stream has let go of it.
  void keep_alive(std::shared_ptr<void> pool) { pool_ = std::move(pool); }

 protected:
  Event begin();
  /// Goes on; true when complete. After an abort it may return false, and is not called again.
  virtual bool run() noexcept = 0;
  /// condition(), which the member `peer` is to make true; aborts the group if that one has left without.
  template <class Condition>
  bool met(int peer, Condition condition) noexcept {
    if (condition()) return true;
    if (!hub_.left(peer)) return false;
    if (condition()) return true; // it may have been its last act
    hub_.abort(
        text("rank {} left group {} while rank {} waits for it", hub_.rank(peer), hub_.id(), hub_.rank(member_)));
    return false;
  }

  Hub& hub_;
  const int member_;

 private:
  /// May end this object's life.
  void forget_queue() noexcept;

  HostEvent event_;
  std::shared_ptr<void> pool_;
  bool queued_ = false, failed_ = false;
};

} // namespace comm_local
