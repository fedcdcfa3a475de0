// SPDX-License-Identifier: Apache-2.0
#include "peer_endpoints.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::p2p {

namespace {

constexpr double kGraceS = 0.2; // for operations that cannot be cancelled

} // namespace

PeerEndpoints::PeerEndpoints(Transport& transport, const Group& group, int number, std::vector<Endpoint*> endpoints)
    : transport_(transport),
      group_(group),
      number_(number),
      endpoints_(std::move(endpoints)),
      peers_(static_cast<std::size_t>(group.size())) {
  transport_.add_user(*this);
  for_others([&](int member, Peer& peer) {
    for (Request* request : {&peer.receiving, &peer.sending, &peer.sending_last}) {
      request->owner = this;
      request->member = member;
    }
    post_receive(member);
  });
}

PeerEndpoints::~PeerEndpoints() {
  close();
}

template <class Body>
void PeerEndpoints::for_others(Body body) noexcept {
  for (int member = 0; member < size(); ++member) {
    if (member != rank()) body(member, peers_[static_cast<std::size_t>(member)]);
  }
}

void PeerEndpoints::post_receive(int member) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  while (!closed_) {
    transport_.receive(peer.receiving, endpoint(member), &peer.incoming, sizeof(Message), control_tag(number_, member));
    if (peer.receiving.open()) return;
    if (peer.receiving.status != Status::ok) return failed(member, reason_of(peer.receiving));
    handle_message(member); // it has already arrived
  }
}

void PeerEndpoints::handle_message(int member) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  const Message& incoming = peer.incoming;
  switch (incoming.kind) {
    case ControlKind::hello:
      peer.received_hello = true;
      return;
    case ControlKind::barrier:
      ++peer.barriers;
      return;
    case ControlKind::leave:
      peer.left = true;
      ++left_;
      return;
    case ControlKind::abort:
      peer.left = true;
      ++left_;
      received_abort_ = true;
      abort({incoming.text, std::min<std::size_t>(incoming.length, Message::kText)});
      return;
  }
}

void PeerEndpoints::completed(Request& request) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(request.member)];
  if (request.status == Status::cancelled) return;
  if (request.status != Status::ok) return failed(request.member, reason_of(request));
  if (&request != &peer.receiving) return;
  handle_message(request.member);
  post_receive(request.member);
}

void PeerEndpoints::send_control(ControlKind kind) noexcept {
  for_others([&](int member, Peer& peer) {
    peer.outgoing.kind = kind;
    peer.outgoing.length = 0;
    const Tag tag = control_tag(number_, rank());
    if (kind == ControlKind::hello) {
      transport_.send_sync(peer.sending, endpoint(member), {&peer.outgoing, peer.outgoing.bytes()}, tag);
    } else {
      transport_.send(peer.sending, endpoint(member), {&peer.outgoing, peer.outgoing.bytes()}, tag);
    }
    if (!peer.sending.open() && peer.sending.status != Status::ok) failed(member, reason_of(peer.sending));
  });
}

void PeerEndpoints::send_last(ControlKind kind, std::string_view text) noexcept {
  if (last_is_sent_) return;
  last_is_sent_ = true;
  last_message_.kind = kind;
  last_message_.length = static_cast<std::uint32_t>(std::min(text.size(), Message::kText));
  std::copy_n(text.data(), last_message_.length, last_message_.text);
  for_others([&](int member, Peer& peer) {
    if (peer.left) return;
    transport_.send(peer.sending_last, endpoint(member), {&last_message_, last_message_.bytes()},
                    control_tag(number_, rank()));
  });
}

void PeerEndpoints::announce() noexcept {
  if (closed_) return;
  transport_.skip_flush();
  if (!received_abort_) send_last(ControlKind::abort, reason()); // the member that aborted informs all
}

bool PeerEndpoints::grace_expired() noexcept {
  if (grace_end_ == Clock::time_point{}) grace_end_ = deadline_in(kGraceS);
  return Clock::now() >= grace_end_;
}

void PeerEndpoints::failed(int member, const char* why) noexcept {
  if (left(member) || closed_) return;
  abort(text("group {}: rank {} is lost to rank {}: {}", id(), world_rank(member), world_rank(rank()), why));
}

void PeerEndpoints::lost(const Endpoint& endpoint) noexcept {
  for_others([&](int member, Peer&) {
    if (endpoints_[static_cast<std::size_t>(member)] == &endpoint) failed(member, endpoint.failure);
  });
}

void PeerEndpoints::retired(std::string_view why) noexcept {
  abort(why);
}

void PeerEndpoints::close() noexcept {
  if (closed_) return;
  if (aborted()) {
    announce();
  } else {
    send_last(ControlKind::leave, {});
  }
  closed_ = true;
  for_others([&](int, Peer& peer) { transport_.cancel(peer.receiving); });
  // Messages that are still in progress are short, and leave as soon as the library can send them.
  const auto open = [&] {
    return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return peer.receiving.open() || peer.sending.open() || peer.sending_last.open();
    });
  };
  const Deadline deadline = deadline_in(kGraceS);
  while (open() && !transport_.retired() && Clock::now() < deadline) transport_.poll();
  transport_.remove_user(*this);
  if (open())
    transport_.retire(
        text("rank {} left group {}, but a member did not receive its last messages", world_rank(rank()), id()));
}

} // namespace triax::p2p
