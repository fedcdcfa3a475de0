// SPDX-License-Identifier: Apache-2.0
#include "triax/p2p/transport.hpp"

#include <utility>

#include "staging.hpp"

namespace triax::p2p {

namespace {

constexpr int kMaxPolls = 256; // per poll: its caller checks deadlines and the abort flag in between

} // namespace

Transport::Transport(Device& device) : device_(device) {}

Transport::~Transport() = default;

/// A library may complete an operation inside the call that posts it: the owner learns it from the request.
template <class Post>
void Transport::begin(Request& request, bool receives, const Post& post) noexcept {
  request.receives = receives;
  request.transport = this;
  request.status = Status::in_progress;
  request.length = 0;
  request.why = nullptr;
  const Request* const before = std::exchange(posting_, &request); // a failure may post others meanwhile
  post();
  posting_ = before;
}

void Transport::send(Request& request, Endpoint& endpoint, Segment first, Segment second, Tag tag, Side side,
                     bool sync) noexcept {
  request.status = Status::cancelled;
  request.why = endpoint.failure;
  if (retired_ || endpoint.failure) return;
  request.segments[0] = first;
  request.segments[1] = second;
  begin(request, false, [&] { post_send(request, endpoint, tag, side, sync); });
}

void Transport::send(Request& request, Endpoint& endpoint, Segment segment, Tag tag, Side side) noexcept {
  send(request, endpoint, segment, {}, tag, side, false);
}

void Transport::send(Request& request, Endpoint& endpoint, Segment first, Segment second, Tag tag) noexcept {
  send(request, endpoint, first, second, tag, Side::host, false);
}

void Transport::send_sync(Request& request, Endpoint& endpoint, Segment segment, Tag tag) noexcept {
  send(request, endpoint, segment, {}, tag, Side::host, true);
}

void Transport::receive(Request& request, Endpoint& from, void* data, std::size_t bytes, Tag tag, Side side) noexcept {
  request.status = Status::cancelled;
  request.why = nullptr;
  if (retired_) return;
  begin(request, true, [&] { post_receive(request, from, data, bytes, tag, side); });
}

void Transport::complete(Request& request, Status status, std::size_t length, const char* why) noexcept {
  request.handle = nullptr;
  request.status = status;
  request.length = length;
  request.why = why;
  if (posting_ != &request) request.owner->completed(request);
}

void Transport::cancel(Request& request) noexcept {
  if (request.open() && !retired_) post_cancel(request);
}

bool Transport::probe(Endpoint& from, Tag tag, Tag& found, std::size_t& bytes) noexcept {
  return !retired_ && find(from, tag, found, bytes);
}

void Transport::lose(Endpoint& endpoint, const char* why) noexcept {
  if (endpoint.failure) return;
  endpoint.failure = why;
  for (TransportUser* user : users_) user->lost(endpoint);
}

Staging& Transport::make_staging(std::size_t bytes, std::size_t device_bytes) {
  staging_ = std::make_unique<Staging>(device_, plugin(), bytes, device_bytes);
  return *staging_;
}

Stream& Transport::staging_stream() noexcept {
  return staging_->stream();
}

void Transport::make_ready(Runnable& runnable) noexcept {
  if (runnable.listed_ || retired_) return;
  runnable.listed_ = true;
  runnable.next_ = nullptr;
  *last_ready_ = &runnable;
  last_ready_ = &runnable.next_;
}

bool Transport::run_ready() noexcept {
  bool ran = false;
  while (Runnable* runnable = first_ready_) {
    first_ready_ = runnable->next_;
    if (!first_ready_) last_ready_ = &first_ready_;
    runnable->listed_ = false;
    runnable->resume();
    ran = true;
  }
  return ran;
}

bool Transport::poll() noexcept {
  bool moved = false;
  for (int i = 0; i < kMaxPolls && !retired_; ++i) {
    const bool progressed = advance();
    if (!run_ready() && !progressed) break;
    moved = true;
  }
  return moved;
}

void Transport::progress() noexcept {
  bool moved = poll();
  if (waiting_ == 0) return wake();
  for (int i = extra_polls(); i > 0 && !moved; --i) moved = poll();
  if (moved || copying_ > 0) {
    wake();
  } else if (!retired_) {
    idle();
  }
}

void Transport::retire(std::string_view why) noexcept {
  if (retired_) return;
  retired_ = true;
  abandon();
  for (TransportUser* user : users_) user->retired(why);
}

} // namespace triax::p2p
