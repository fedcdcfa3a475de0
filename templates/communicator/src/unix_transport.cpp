// SPDX-License-Identifier: Apache-2.0
// Connections, and posted calls. unix_messages.cpp moves the bytes.
#include "unix_transport.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <triax/error.hpp>
#include <utility>

namespace triax::comm_template {

namespace {

using p2p::Request;
using p2p::Status;

constexpr double kCloseS = 2;           // seconds for sent messages to leave
constexpr int kBacklog = 4096;          // connections that the kernel keeps until they are accepted
constexpr std::size_t kAddressSize = 5; // an autobind name: a zero byte, then five hexadecimal digits

Socket make_socket() {
  Socket out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.number() < 0)
    throw Error(text("cannot create a socket: {}", std::strerror(errno)), "comm-template",
                "check the limit of open files: ulimit -n");
  return out;
}

std::string name_of_machine() {
  std::array<char, 256> out{};
  ::gethostname(out.data(), out.size() - 1);
  return out.data();
}

/// Whether the process is of the user who runs this rank. Abstract names have no file permissions, so the user is
/// checked here.
bool is_own_process(const Socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

} // namespace

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

UnixTransport::UnixTransport(Device& of, std::size_t staging_bytes)
    : Transport(of), host_(name_of_machine()), listener_(make_socket()) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t size = sizeof name.sun_family; // no name: the kernel chooses one
  if (::bind(listener_.number(), reinterpret_cast<sockaddr*>(&name), size) != 0 ||
      ::listen(listener_.number(), kBacklog) != 0)
    throw Error(text("cannot listen on a socket: {}", std::strerror(errno)), "comm-template");
  size = sizeof name;
  ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&name), &size);
  address_.assign(name.sun_path + 1, kAddressSize);
  if (of.kind() != DeviceKind::host) make_staging(staging_bytes, 0);
  device().add_source(*this);
}

UnixTransport::~UnixTransport() {
  device().remove_source(*this);
  const auto sends = [&] {
    return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->sends.empty(); });
  };
  const Deadline deadline = deadline_in(skips_flush() ? 0 : kCloseS);
  while (!retired() && sends() && Clock::now() < deadline)
    if (!advance()) ::sched_yield();
}

p2p::Endpoint& UnixTransport::connect(std::string_view address, std::string_view host, int rank) {
  const std::string where = text("comm-template: rank {}", rank);
  if (host != host_)
    throw Error(text("it is on machine {}, but this rank on {}", host, host_), where,
                "run all ranks on one machine, or use comm-ucx for this axis");
  if (address.size() != kAddressSize) throw Error(text("\"{}\" is not an address of this plugin", address), where);
  for (const auto& peer : peers_)
    if (peer->address == address) return *peer;
  auto peer = std::make_unique<Peer>();
  peer->address = address;
  peer->out = make_socket();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::copy(address.begin(), address.end(), name.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kAddressSize);
  if (::connect(peer->out.number(), reinterpret_cast<sockaddr*>(&name), size) != 0)
    throw Error(text("cannot connect: {}", std::strerror(errno)), where, "its log says whether it has ended");
  if (!is_own_process(peer->out)) throw Error("a process of another user listens there", where);
  // Says who connects. A new connection has space for it.
  if (::send(peer->out.number(), address_.data(), kAddressSize, MSG_NOSIGNAL) != static_cast<ssize_t>(kAddressSize))
    throw Error(text("cannot send to it: {}", std::strerror(errno)), where);
  reserve(*peer);
  peers_.push_back(std::move(peer));
  introduce_guests();
  return *peers_.back();
}

void UnixTransport::reserve(Peer& peer) {
  constexpr std::size_t kCalls = 64, kBytes = std::size_t{32} << 10; // not used until messages arrive
  for (auto* const list : {&peer.sends, &peer.receives, &peer.unacknowledged}) list->reserve(kCalls);
  peer.messages.reserve(kCalls);
  peer.body.reserve(kBytes);
  for (std::size_t i = 0; i < kCalls; ++i) {
    free_.push_back(operations_.emplace_back(std::make_unique<Operation>()).get());
    free_buffers_.emplace_back().reserve(kBytes);
  }
}

UnixTransport::Operation& UnixTransport::take_operation() {
  if (free_.empty()) free_.push_back(operations_.emplace_back(std::make_unique<Operation>()).get());
  Operation& out = *free_.back();
  free_.pop_back();
  out = {};
  return out;
}

void UnixTransport::finish(Operation& operation, Status status, std::size_t length, const char* why) noexcept {
  Request* const request = operation.request;
  free_.push_back(&operation);
  if (request) complete(*request, status, length, why);
}

UnixTransport::Peer& UnixTransport::peer_of(p2p::Endpoint& endpoint) noexcept {
  return static_cast<Peer&>(endpoint); // NOLINT(cppcoreguidelines-pro-type-static-cast-downcast)
}

void UnixTransport::post_send(Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side, bool sync) noexcept {
  Peer& peer = peer_of(endpoint);
  Operation& operation = take_operation();
  operation.request = &request;
  operation.peer = &peer;
  operation.header = {tag, request.segments[0].bytes + request.segments[1].bytes, sync ? ++last_number_ : 0};
  request.handle = &operation;
  peer.sends.push_back(&operation);
  if (peer.sends.size() == 1) send_some(peer);
}

void UnixTransport::post_receive(Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                                 p2p::Side) noexcept {
  Peer& peer = peer_of(from);
  Operation& operation = take_operation();
  operation.request = &request;
  operation.peer = &peer;
  operation.header.tag = tag;
  operation.data = static_cast<std::byte*>(data);
  operation.bytes = bytes;
  request.handle = &operation;
  const auto found = std::find_if(peer.messages.begin(), peer.messages.end(),
                                  [&](const Message& message) { return message.header.tag == tag; });
  if (found == peer.messages.end()) return peer.receives.push_back(&operation);
  Message message = std::move(*found);
  peer.messages.erase(found);
  deliver(peer, operation, message.header, message.data.data());
  free_buffers_.push_back(std::move(message.data));
}

/// A send that has begun cannot be cancelled: its peer waits for the rest.
void UnixTransport::post_cancel(Request& request) noexcept {
  auto& operation = *static_cast<Operation*>(request.handle);
  Peer& peer = *operation.peer;
  if (peer.target == &operation) {
    peer.target = nullptr;
    peer.is_dropped = true;
  }
  const auto holds = [&](const std::vector<Operation*>& list) {
    return std::find(list.begin(), list.end(), &operation) != list.end();
  };
  if (holds(peer.sends) && operation.sent > 0) return;
  for (auto* list : {&peer.sends, &peer.receives, &peer.unacknowledged}) std::erase(*list, &operation);
  finish(operation, Status::cancelled);
}

bool UnixTransport::find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept {
  for (const Message& message : peer_of(from).messages) {
    if (((message.header.tag ^ tag) & p2p::kAnyType) != 0) continue;
    found = message.header.tag;
    bytes = message.header.bytes;
    return true;
  }
  return false;
}

bool UnixTransport::advance() noexcept {
  bool moved = accept_peers();
  for (std::size_t i = 0; i < peers_.size(); ++i) { // completions may connect to more
    moved |= send_some(*peers_[i]);
    moved |= receive_some(*peers_[i]);
  }
  // A peer is lost when nothing else arrives: another may have sent why it ended.
  for (std::size_t i = 0; i < peers_.size() && !moved; ++i)
    if (peers_[i]->end) lose_peer(*peers_[i], peers_[i]->end);
  return moved;
}

bool UnixTransport::accept_peers() noexcept {
  bool moved = false;
  while (true) {
    Socket socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.number() < 0) break;
    moved = true;
    if (is_own_process(socket)) guests_.push_back({std::move(socket), {}});
  }
  if (!guests_.empty()) introduce_guests();
  return moved;
}

/// Gives the connections of known peers to them. A peer that this rank has not connected to yet stays a guest.
void UnixTransport::introduce_guests() noexcept {
  for (Guest& guest : guests_) {
    std::array<char, kAddressSize> name{};
    const std::size_t missing = kAddressSize - guest.address.size();
    if (missing == 0) continue;
    const ssize_t got = ::recv(guest.socket.number(), name.data(), missing, 0);
    if (got > 0) guest.address.append(name.data(), static_cast<std::size_t>(got));
    if (got == 0) guest.socket = Socket(); // it has gone
  }
  for (Guest& guest : guests_)
    for (const auto& peer : peers_)
      if (peer->address == guest.address && peer->in.number() < 0 && !peer->failure) peer->in = std::move(guest.socket);
  std::erase_if(guests_, [](const Guest& guest) { return guest.socket.number() < 0; });
}

/// Fails the sends. Receives stay: the groups end them, with the reason, or because the peer has left in order.
void UnixTransport::lose_peer(Peer& peer, const char* why) noexcept {
  if (peer.failure) return;
  peer.in = Socket();
  peer.out = Socket();
  peer.target = nullptr;
  lose(peer, why);
  for (auto* list : {&peer.sends, &peer.unacknowledged})
    while (!list->empty()) {
      Operation& operation = *list->back();
      list->pop_back();
      finish(operation, Status::failed, 0, why);
    }
}

} // namespace triax::comm_template
