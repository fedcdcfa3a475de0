// SPDX-License-Identifier: Apache-2.0
#include "local_call.hpp"

namespace triax::comm_local {

Event Call::begin() {
  queued_ = true;
  return event_.arm();
}

bool Call::advance() noexcept {
  const bool complete = !failed_ && !group_state_.aborted() && run();
  if (complete) {
    event_.fire();
  } else if (!group_state_.aborted() || !fail_when_quiet()) {
    return false;
  }
  forget_queue();
  return true;
}

void Call::dropped() noexcept {
  group_state_.leave_early(member_);
  forget_queue();
}

void Call::forget_queue() noexcept {
  queued_ = false;
  const std::shared_ptr<void> last = std::move(pool_); // may be the last reference to the pool that holds this
}

bool Call::fail_when_quiet() noexcept {
  if (failed_) return true;
  if (!group_state_.quiet()) return false;
  failed_ = true;
  event_.fail(group_state_.reason());
  return true;
}

} // namespace triax::comm_local
