// SPDX-License-Identifier: Apache-2.0
// TCP ports for programs that tests start. A port that the kernel chose and that was closed again may go to another
// program before the tested one listens: to a server, or to an outgoing connection. These ports are outside the range
// that Linux takes such ports from, and reserved among all tests of the machine while the process lives.
//
// Threads: any. Blocking: no. Errors: std::runtime_error if no port is left.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "triax/text.hpp"

namespace triax::test {

/// Whether `address` was bound to a new socket, which stays open if `keep`.
inline bool try_bind(const void* address, std::size_t size, int domain, bool keep) {
  const int socket = ::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = ::bind(socket, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0;
  if (!bound || !keep) ::close(socket);
  return bound;
}

/// A port on which nothing listens on 127.0.0.1, and that no other call on this machine returns before this process
/// ends. The name of a Unix socket in the abstract namespace is the reservation.
inline int free_port() {
  constexpr int kFirst = 20000, kCount = 5000; // Linux takes its own from 32768 on (ip_local_port_range)
  static std::atomic<int> next = ::getpid();
  for (int tries = 0; tries < kCount; ++tries) {
    const int port = kFirst + 2 * (next++ % kCount); // a job may use the port after it, too
    const std::string name = text("triax-test-port-{}", port);
    sockaddr_un reservation{.sun_family = AF_UNIX, .sun_path = {}};
    std::ranges::copy(name, reservation.sun_path + 1); // a name that begins with NUL is not a file
    if (!try_bind(&reservation, offsetof(sockaddr_un, sun_path) + 1 + name.size(), AF_UNIX, true)) continue;
    const auto is_free = [](int number) {
      const sockaddr_in address{.sin_family = AF_INET,
                                .sin_port = htons(static_cast<in_port_t>(number)),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                                .sin_zero = {}};
      return try_bind(&address, sizeof address, AF_INET, false);
    };
    if (is_free(port) && is_free(port + 1)) return port;
  }
  throw std::runtime_error("all ports for tests are in use");
}

} // namespace triax::test
