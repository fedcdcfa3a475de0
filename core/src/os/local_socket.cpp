// SPDX-License-Identifier: Apache-2.0
#include "os/local_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "os/errno_text.hpp"
#include "os/socket.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::os {

namespace {

struct LocalAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// An abstract address begins with a zero byte.
LocalAddress abstract_address(const std::string& name) {
  LocalAddress out;
  out.address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof out.address.sun_path) throw Error("the name is too long", name);
  name.copy(out.address.sun_path + 1, name.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

const sockaddr* generic(const LocalAddress& of) {
  return reinterpret_cast<const sockaddr*>(&of.address);
}

Descriptor local_socket(const std::string& name, int flags) {
  Descriptor out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!out) throw Error(text("cannot create a socket: {}", errno_text(errno)), name);
  return out;
}

bool is_of_this_user(const Descriptor& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

} // namespace

LocalConnection LocalConnection::to(const std::string& name) {
  const LocalAddress address = abstract_address(name);
  Descriptor socket = local_socket(name, 0);
  if (::connect(socket.number(), generic(address), address.size) != 0)
    throw Error(text("cannot connect: {}", errno_text(errno)), name, "the process that listened there has ended");
  return LocalConnection(std::move(socket));
}

std::optional<std::string> LocalConnection::take_line() {
  const std::size_t end = partial_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string out = partial_.substr(0, end);
  partial_.erase(0, end + 1);
  return out;
}

std::optional<std::string> LocalConnection::read_line(Deadline deadline) {
  while (true) {
    if (std::optional<std::string> line = take_line()) return line;
    if (closed_) return std::nullopt;
    pollfd waiting{socket_.number(), POLLIN, 0};
    if (::poll(&waiting, 1, poll_ms(deadline)) <= 0) {
      if (Clock::now() >= deadline) return std::nullopt;
      continue;
    }
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(socket_.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) partial_.append(buffer.data(), static_cast<std::size_t>(count));
    closed_ = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  }
}

void LocalConnection::write_line(std::string_view line) {
  const std::string whole = std::string(line) + '\n';
  for (std::size_t sent = 0; sent < whole.size() && !closed_;) {
    const ssize_t count = ::send(socket_.number(), whole.data() + sent, whole.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    closed_ = count < 0 && errno != EINTR;
  }
}

LocalListener::LocalListener(std::string name) : name_(std::move(name)), socket_(local_socket(name_, SOCK_NONBLOCK)) {
  const LocalAddress address = abstract_address(name_);
  if (::bind(socket_.number(), generic(address), address.size) != 0 || ::listen(socket_.number(), SOMAXCONN) != 0)
    throw Error(text("cannot listen: {}", errno_text(errno)), name_);
}

std::optional<LocalConnection> LocalListener::accept() {
  while (true) {
    Descriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return std::nullopt;
    if (is_of_this_user(socket)) return LocalConnection(std::move(socket));
  }
}

} // namespace triax::os
