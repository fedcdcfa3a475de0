// SPDX-License-Identifier: Apache-2.0
#include "peer_endpoints.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::comm_ucx {

namespace {

constexpr double kGraceS = 0.2; // for operations that UCX cannot cancel

} // namespace

PeerEndpoints::PeerEndpoints(Transport& transport, const Group& group, int number, std::vector<Endpoint*> endpoints)
    : transport_(transport),
      group_(group),
      number_(number),
      endpoints_(std::move(endpoints)),
      peers_(static_cast<std::size_t>(group.size())) {
  transport_.add_user(*this);
  for_others([&](int member, Peer& peer) {
    for (Request* request : {&peer.hearing, &peer.saying, &peer.parting}) {
      request->owner = this;
      request->member = member;
    }
    listen(member);
  });
}

PeerEndpoints::~PeerEndpoints() {
  close();
}

template <class Body>
void PeerEndpoints::for_others(Body body) noexcept {
  for (int member = 0; member < size(); ++member) {
    if (member != index()) body(member, peers_[static_cast<std::size_t>(member)]);
  }
}

void PeerEndpoints::listen(int member) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  while (!closed_) {
    transport_.receive(peer.hearing, &peer.heard, sizeof(Message), control_tag(number_, member));
    if (peer.hearing.open()) return;
    if (peer.hearing.status != UCS_OK) return failed(member, peer.hearing.status);
    hear(member); // it has already arrived
  }
}

void PeerEndpoints::hear(int member) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  const Message& heard = peer.heard;
  switch (heard.word) {
    case Word::hello:
      peer.greeted = true;
      return;
    case Word::barrier:
      ++peer.barriers;
      return;
    case Word::leave:
      peer.left = true;
      ++left_;
      return;
    case Word::abort:
      peer.left = true;
      ++left_;
      heard_abort_ = true;
      abort({heard.text, std::min<std::size_t>(heard.length, Message::kText)});
      return;
  }
}

void PeerEndpoints::ended(Request& request) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(request.member)];
  if (request.status == UCS_ERR_CANCELED) return;
  if (request.status != UCS_OK) return failed(request.member, request.status);
  if (&request != &peer.hearing) return;
  hear(request.member);
  listen(request.member);
}

void PeerEndpoints::send_word(Word word) noexcept {
  for_others([&](int member, Peer& peer) {
    peer.said.word = word;
    peer.said.length = 0;
    const Tag tag = control_tag(number_, index());
    if (word == Word::hello) {
      transport_.send_met(peer.saying, endpoint(member), &peer.said, peer.said.bytes(), tag);
    } else {
      transport_.send(peer.saying, endpoint(member), &peer.said, peer.said.bytes(), tag);
    }
    if (!peer.saying.open() && peer.saying.status != UCS_OK) failed(member, peer.saying.status);
  });
}

void PeerEndpoints::part(Word word, std::string_view text) noexcept {
  if (parted_) return;
  parted_ = true;
  parting_.word = word;
  parting_.length = static_cast<std::uint32_t>(std::min(text.size(), Message::kText));
  std::copy_n(text.data(), parting_.length, parting_.text);
  for_others([&](int member, Peer& peer) {
    if (peer.left) return;
    transport_.send(peer.parting, endpoint(member), &parting_, parting_.bytes(), control_tag(number_, index()));
  });
}

void PeerEndpoints::announce() noexcept {
  if (closed_) return;
  transport_.hurry();
  if (!heard_abort_) part(Word::abort, reason()); // the member that aborted informs all
}

bool PeerEndpoints::grace_expired() noexcept {
  if (grace_end_ == Clock::time_point{}) grace_end_ = deadline_in(kGraceS);
  return Clock::now() >= grace_end_;
}

void PeerEndpoints::failed(int member, ucs_status_t status) noexcept {
  if (left(member) || closed_) return;
  abort(text("group {}: rank {} is lost to rank {}: {}", id(), rank(member), rank(index()), ucs_status_string(status)));
}

void PeerEndpoints::lost(const Endpoint& endpoint) noexcept {
  for_others([&](int member, Peer&) {
    if (endpoints_[static_cast<std::size_t>(member)] == &endpoint) failed(member, endpoint.status);
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
    part(Word::leave, {});
  }
  closed_ = true;
  for_others([&](int, Peer& peer) { transport_.cancel(peer.hearing); });
  // Messages that are still in progress are short, and leave as soon as UCX can send them.
  const auto open = [&] {
    return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return peer.hearing.open() || peer.saying.open() || peer.parting.open();
    });
  };
  const Deadline deadline = deadline_in(kGraceS);
  while (open() && !transport_.retired() && Clock::now() < deadline) transport_.poll();
  transport_.remove_user(*this);
  if (open()) transport_.retire(text("rank {} left group {} while a member took no messages", rank(index()), id()));
}

} // namespace triax::comm_ucx
