// SPDX-License-Identifier: Apache-2.0
// One posted call of one member, as a host task. It fires its event when the call is complete, and fails it after an
// abort.
//
// Ownership: the communicator's pool, which reuses the call when it has finished.
#pragma once

#include <memory>
#include <utility>

#include "group_state.hpp"

namespace triax::comm_local {

class Call : public HostTask {
 public:
  Call(GroupState& group_state, int member) : group_state_(group_state), member_(member) {}

  bool advance() noexcept final;
  /// The stream is destroyed before the call is complete: aborts the group. After it returns, no member reads this
  /// member's buffers.
  void dropped() noexcept final;
  /// Call it after an abort only. Fails the event as soon as no member accesses another's memory; true if it has
  /// failed.
  bool fail_when_quiet() noexcept;
  bool queued() const noexcept { return queued_; }
  bool reusable() const noexcept { return !queued_ && !failed_; }
  /// For a communicator that is destroyed while the call is queued: keeps the pool alive until the stream drops the
  /// call.
  void keep_alive(std::shared_ptr<void> pool) { pool_ = std::move(pool); }

 protected:
  Event begin();
  /// Advances the call; true when complete. After an abort it may return false, and is not called again.
  virtual bool run() noexcept = 0;
  /// Evaluates condition(), which `peer` has to make true. Aborts the group if `peer` has left without doing so.
  template <class Condition>
  bool is_reached(int peer, Condition condition) noexcept {
    if (condition()) return true;
    if (!group_state_.left(peer)) return false;
    if (condition()) return true; // the peer may have made it true just before it left
    group_state_.abort(text("rank {} left group {} while rank {} waits for it", group_state_.world_rank(peer),
                            group_state_.id(), group_state_.world_rank(member_)));
    return false;
  }

  GroupState& group_state_;
  const int member_;

 private:
  /// May destroy this object.
  void forget_queue() noexcept;

  HostEvent event_;
  std::shared_ptr<void> pool_;
  bool queued_ = false, failed_ = false;
};

} // namespace triax::comm_local
