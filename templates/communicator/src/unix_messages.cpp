// SPDX-License-Identifier: Apache-2.0
// Sends and receives messages, each with its header, and matches those that arrive with the posted receives.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "unix_transport.hpp"

namespace triax::comm_template {

namespace {

using p2p::Status;

bool is_busy(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

} // namespace

bool UnixTransport::send_some(Peer& peer) noexcept {
  bool moved = false;
  while (!peer.sends.empty() && !peer.is_closed && !retired()) {
    Operation& operation = *peer.sends.front();
    std::array<iovec, 3> parts{{{&operation.header, sizeof(Header)}, {}, {}}};
    if (operation.request)
      for (std::size_t i = 0; i < 2; ++i)
        parts[i + 1] = {const_cast<void*>(operation.request->segments[i].data), operation.request->segments[i].bytes};
    std::size_t skip = operation.sent;
    for (iovec& part : parts) {
      const std::size_t taken = std::min(skip, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      skip -= taken;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(peer.out.number(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (is_busy(errno)) return moved;
      // It may have left in order: its last messages are read first, and receive_some() finds their end.
      peer.is_closed = true;
      if (peer.in.number() < 0) peer.end = "its end of the connection is closed";
      return true;
    }
    moved = true;
    operation.sent += static_cast<std::size_t>(sent);
    const std::size_t body = operation.request ? operation.header.bytes : 0;
    if (operation.sent < sizeof(Header) + body) continue;
    peer.sends.erase(peer.sends.begin());
    if (operation.request && operation.header.number != 0) {
      peer.unacknowledged.push_back(&operation); // completes when its receive has matched
    } else {
      finish(operation, Status::ok);
    }
  }
  return moved;
}

/// Reads until `done` is `bytes`. False: they have not all arrived, or nothing more will (Peer::end).
bool UnixTransport::read_into(Peer& peer, std::byte* to, std::size_t bytes, std::size_t& done) noexcept {
  while (done < bytes) {
    const ssize_t got = ::recv(peer.in.number(), to + done, bytes - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0) {
      peer.end = "it has closed its connection: its process has ended";
    } else if (!is_busy(errno)) {
      peer.end = "its connection is broken";
    }
    return false;
  }
  return true;
}

bool UnixTransport::receive_some(Peer& peer) noexcept {
  bool moved = false;
  while (peer.in.number() >= 0 && !peer.end && !retired()) {
    const std::size_t before = peer.header_bytes + peer.body_bytes;
    bool complete = false;
    if (peer.header_bytes < sizeof(Header)) {
      auto* const header = reinterpret_cast<std::byte*>(&peer.header);
      if (read_into(peer, header, sizeof(Header), peer.header_bytes)) begin_body(peer);
    }
    if (peer.header_bytes == sizeof(Header)) {
      const std::size_t bytes = peer.header.tag == 0 ? 0 : peer.header.bytes;
      std::byte* to = peer.target ? peer.target->data : nullptr;
      if (!to) {
        if (peer.body.size() < bytes) peer.body.resize(bytes);
        to = peer.body.data();
      }
      complete = read_into(peer, to, bytes, peer.body_bytes);
    }
    moved |= complete || peer.end || peer.header_bytes + peer.body_bytes != before;
    if (!complete) break;
    end_body(peer);
  }
  return moved;
}

/// The header has arrived: the message goes to its receive, or to a buffer if there is none yet or it is too short.
void UnixTransport::begin_body(Peer& peer) noexcept {
  peer.body_bytes = 0;
  if (peer.header.tag == 0) return;
  const auto found = std::find_if(peer.receives.begin(), peer.receives.end(),
                                  [&](const Operation* receive) { return receive->header.tag == peer.header.tag; });
  if (found != peer.receives.end() && (*found)->bytes >= peer.header.bytes) peer.target = *found;
}

void UnixTransport::end_body(Peer& peer) noexcept {
  const Header header = peer.header;
  Operation* const target = std::exchange(peer.target, nullptr);
  const bool is_dropped = std::exchange(peer.is_dropped, false);
  peer.header_bytes = peer.body_bytes = 0;
  if (header.tag == 0) {
    const auto sent = std::find_if(peer.unacknowledged.begin(), peer.unacknowledged.end(),
                                   [&](const Operation* one) { return one->header.number == header.number; });
    if (sent == peer.unacknowledged.end()) return; // it was cancelled
    Operation& operation = **sent;
    peer.unacknowledged.erase(sent);
    return finish(operation, Status::ok);
  }
  if (is_dropped) return;
  if (target) {
    std::erase(peer.receives, target);
    acknowledge(peer, header);
    return finish(*target, Status::ok, header.bytes);
  }
  if (Operation* const receive = take_receive(peer, header.tag))
    return deliver(peer, *receive, header, peer.body.data());
  if (free_buffers_.empty()) free_buffers_.emplace_back();
  peer.messages.push_back({header, std::exchange(peer.body, std::move(free_buffers_.back()))});
  free_buffers_.pop_back();
}

UnixTransport::Operation* UnixTransport::take_receive(Peer& peer, p2p::Tag tag) noexcept {
  for (Operation* const receive : peer.receives) {
    if (receive->header.tag != tag) continue;
    std::erase(peer.receives, receive);
    return receive;
  }
  return nullptr;
}

/// Completes a receive with a message from a buffer.
void UnixTransport::deliver(Peer& peer, Operation& receive, const Header& header, const std::byte* data) noexcept {
  if (header.bytes > receive.bytes) return finish(receive, Status::truncated, header.bytes);
  std::copy_n(data, header.bytes, receive.data);
  acknowledge(peer, header);
  finish(receive, Status::ok, header.bytes);
}

void UnixTransport::acknowledge(Peer& peer, const Header& received) noexcept {
  if (received.number == 0 || peer.failure) return;
  Operation& operation = take_operation();
  operation.peer = &peer;
  operation.header = {0, 0, received.number};
  peer.sends.push_back(&operation);
}

} // namespace triax::comm_template
