// SPDX-License-Identifier: Apache-2.0
#include "os/socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Null if the name cannot be resolved; `why` is the reason.
Addresses resolve(const Address& address, int flags, std::string& why) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed != 0) {
    const int system = errno;
    why = failed == EAI_SYSTEM ? errno_text(system) : ::gai_strerror(failed);
    return {nullptr, ::freeaddrinfo};
  }
  return {found, ::freeaddrinfo};
}

/// Whether a socket has connected to itself: the port it got is the port it connects to, where no server listens.
bool is_connected_to_itself(const Descriptor& socket) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here, other = sizeof there;
  return ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
         ::getpeername(socket.number(), reinterpret_cast<sockaddr*>(&there), &other) == 0 && size == other &&
         std::memcmp(&here, &there, size) == 0;
}

void without_delay(const Descriptor& socket) {
  const int yes = 1; // if it fails, only speed is lost
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

bool wait_for(const Descriptor& socket, short events, Deadline deadline) {
  do {
    pollfd waiting{socket.number(), events, 0};
    if (::poll(&waiting, 1, poll_ms(deadline)) > 0) return true;
  } while (Clock::now() < deadline);
  return false;
}

/// 0, or the error number.
int try_connect(const Descriptor& socket, const addrinfo& to, Deadline deadline) {
  if (!socket) return errno;
  if (::connect(socket.number(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    if (error != 0) return error;
  }
  return is_connected_to_itself(socket) ? ECONNREFUSED : 0;
}

} // namespace

Wake::Wake() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw Error(text("cannot create an event descriptor: {}", errno_text()), "job server");
}

void Wake::wake() noexcept {
  const std::uint64_t one = 1; // fails only if the thread is already awake
  [[maybe_unused]] const ssize_t written = ::write(event_.number(), &one, sizeof one);
}

void Wake::clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.number(), &count, sizeof count);
}

Descriptor listen_on(const Address& address) {
  std::string why;
  const Addresses found = resolve(address, AI_NUMERICHOST | AI_PASSIVE, why);
  if (!found) throw Error(text("invalid address {}: {}", to_text(address), why), "job server");
  Descriptor socket(::socket(found->ai_family, kSocketType, 0));
  const int yes = 1; // else the port stays unusable for a minute after a job
  if (socket && ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(socket.number(), found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket.number(), SOMAXCONN) == 0)
    return socket;
  const int failed = errno;
  if (failed == EADDRINUSE)
    throw Error(text("port {} of {} is in use", address.port, address.host), "job server",
                "choose another with launch.port, or leave it out");
  throw Error(text("cannot listen on port {} of {}: {}", address.port, address.host, errno_text(failed)), "job server",
              failed == EACCES ? "choose a port above 1023 with launch.port, or leave it out" : "");
}

int port_of(const Descriptor& listening) {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  if (::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
    throw Error(text("cannot get the port of a socket: {}", errno_text()), "job server");
  return ntohs(here.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(here).sin_port
                                         : reinterpret_cast<const sockaddr_in6&>(here).sin6_port);
}

Descriptor accept_from(const Descriptor& listening, bool& full, std::string& from) {
  sockaddr_storage there{};
  socklen_t size = sizeof there;
  Descriptor socket(
      ::accept4(listening.number(), reinterpret_cast<sockaddr*>(&there), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  std::array<char, NI_MAXHOST> number{};
  const bool known = socket && ::getnameinfo(reinterpret_cast<const sockaddr*>(&there), size, number.data(),
                                             number.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  from = known ? number.data() : "an unknown address";
  full = !socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (socket) without_delay(socket);
  return socket;
}

std::optional<Descriptor> connect_to(const Address& address, Deadline deadline, std::string& why) {
  const Addresses found = resolve(address, 0, why);
  for (const addrinfo* to = found.get(); to; to = to->ai_next) {
    Descriptor socket(::socket(to->ai_family, kSocketType, 0));
    const int failed = try_connect(socket, *to, deadline);
    if (failed == 0) {
      without_delay(socket);
      return socket;
    }
    why = errno_text(failed);
  }
  return std::nullopt;
}

bool wait_readable(const Descriptor& socket, Deadline deadline) {
  return wait_for(socket, POLLIN, deadline);
}

int poll_ms(Deadline deadline) {
  const Clock::time_point now = Clock::now();
  if (deadline <= now) return 0;
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(deadline - now, std::chrono::seconds(1)))
          .count());
}

} // namespace triax::os
