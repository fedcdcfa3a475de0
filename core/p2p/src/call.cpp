// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <sched.h>

#include "triax/error.hpp"

namespace triax::p2p {

namespace {

constexpr unsigned kLongIdle = 4096; // polls of the progress loop

} // namespace

Event Call::begin() {
  queued_ = true;
  launched_ = complete_ = cancelled_ = finished_ = false;
  idle_polls_ = 0;
  last_download_ = last_upload_ = {};
  return event_.arm();
}

bool Call::advance() noexcept {
  if (!failed_ && !endpoints_.aborted()) {
    if (!launched_) {
      launched_ = true;
      endpoints_.transport().begin_waiting();
      launch();
      if (!endpoints_.aborted()) complete_ = run();
    } else if (!complete_) {
      if (copying_) {
        copies_ended();
        complete_ = run();
      }
      if (!complete_) check_peers();
    }
  }
  if (complete_ && !endpoints_.aborted()) {
    finish();
  } else if (!endpoints_.aborted() || !fail_when_quiet()) {
    return false;
  }
  forget_queue();
  return true;
}

/// A call that ends with its communicator can be finished again by its stream.
void Call::finish() noexcept {
  if (finished_) return;
  finished_ = true;
  endpoints_.transport().end_waiting();
  event_.fire();
}

void Call::resume() noexcept {
  idle_polls_ = 0;
  if (launched_ && !complete_ && !cancelled_ && !endpoints_.aborted()) complete_ = run();
}

void Call::check_peers() noexcept {
  if (++idle_polls_ % kLongIdle == 0 || endpoints_.anyone_left()) check_messages();
  if (!endpoints_.anyone_left()) return;
  // Messages that a member sent before it left have arrived by now.
  for (std::size_t i = 0; i < requests(); ++i) {
    const Request& request = request_at(i);
    if (!request.open() || !endpoints_.left(request.member)) continue;
    return endpoints_.abort(text("rank {} left group {} while rank {} waits for it",
                                 endpoints_.world_rank(request.member), endpoints_.id(),
                                 endpoints_.world_rank(endpoints_.rank())));
  }
}

void Call::dropped() noexcept {
  end();
  forget_queue();
}

void Call::end() noexcept {
  if (failed_) return;
  if (complete_ && !endpoints_.aborted()) return finish();
  endpoints_.abort(text("rank {} left group {} before its calls were complete",
                        endpoints_.world_rank(endpoints_.rank()), endpoints_.id()));
  while (!fail_when_quiet()) {
    endpoints_.transport().poll();
    if (copying_) sched_yield();
  }
}

void Call::forget_queue() noexcept {
  queued_ = false;
  const std::shared_ptr<void> last = std::move(pool_); // may be the last reference to the pool that holds this
}

bool Call::fail_when_quiet() noexcept {
  if (failed_) return true;
  endpoints_.announce();
  if (!cancelled_) {
    cancelled_ = true;
    for (std::size_t i = 0; launched_ && i < requests(); ++i) endpoints_.transport().cancel(request_at(i));
  }
  if (!copies_ended()) return false; // soon: copies do not depend on peers
  if (in_progress_ > 0 && !endpoints_.transport().retired()) {
    if (!endpoints_.grace_expired()) return false;
    endpoints_.transport().retire(text("{}; sends of rank {} cannot be cancelled, so all its groups of {} are aborted",
                                       endpoints_.reason(), endpoints_.world_rank(endpoints_.rank()),
                                       endpoints_.transport().plugin()));
  }
  failed_ = true;
  if (launched_) endpoints_.transport().end_waiting();
  event_.fail(endpoints_.reason());
  return true;
}

void Call::started(Request& request) noexcept {
  if (request.open()) {
    ++in_progress_;
  } else {
    check_status(request);
  }
}

void Call::completed(Request& request) noexcept {
  --in_progress_;
  check_status(request);
  if (!cancelled_) endpoints_.transport().make_ready(*this);
}

/// Truncation is not handled here: the call reports a message longer than its buffer.
void Call::check_status(const Request& request) noexcept {
  if (request.status == Status::ok || request.status == Status::truncated || cancelled_) return;
  endpoints_.failed(request.member, reason_of(request));
}

void Call::send(Request& request, int member, const void* data, std::size_t bytes, Tag tag, Side side) noexcept {
  request.owner = this;
  request.member = member;
  endpoints_.transport().send(request, endpoints_.endpoint(member), {data, bytes}, tag, side);
  started(request);
}

void Call::send(Request& request, int member, const void* first, std::size_t first_bytes, const void* second,
                std::size_t second_bytes, Tag tag) noexcept {
  request.owner = this;
  request.member = member;
  endpoints_.transport().send(request, endpoints_.endpoint(member), {first, first_bytes}, {second, second_bytes}, tag);
  started(request);
}

void Call::receive(Request& request, int member, void* data, std::size_t bytes, Tag tag, Side side) noexcept {
  request.owner = this;
  request.member = member;
  endpoints_.transport().receive(request, endpoints_.endpoint(member), data, bytes, tag, side);
  started(request);
}

} // namespace triax::p2p
