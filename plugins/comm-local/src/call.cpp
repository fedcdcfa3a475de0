#include "call.hpp"

namespace comm_local {

Event Call::begin() {
  queued_ = true;
  return event_.arm();
}

bool Call::advance() noexcept {
  const bool complete = !failed_ && !hub_.aborted() && run();
  if (complete) {
    event_.fire();
  } else if (!hub_.aborted() || !fail_when_quiet()) {
    return false;
  }
  queued_ = false;
  const std::shared_ptr<void> last = std::move(pool_); // may hold the last reference to this object
  return true;
}

bool Call::fail_when_quiet() noexcept {
  if (failed_) return true;
  if (!hub_.quiet()) return false;
  failed_ = true;
  event_.fail(hub_.reason());
  return true;
}

} // namespace comm_local
