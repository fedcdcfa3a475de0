// SPDX-License-Identifier: Apache-2.0
// TCP sockets of the control plane: non-blocking, close-on-exec, TCP_NODELAY.
//
// Threads: one at a time; Wake::wake(): any. Blocking: connect_to() until its deadline; name resolution may use the
// network. Errors: Error if the operating system refuses; a failed connection returns its reason as text.
#pragma once

#include <optional>
#include <string>

#include "os/address.hpp"
#include "os/descriptor.hpp"
#include "triax/device.hpp"

namespace triax::os {

/// Wakes another thread from poll().
class Wake {
 public:
  Wake();
  int number() const noexcept { return event_.number(); }
  void wake() noexcept;
  /// Call it after poll().
  void clear() noexcept;

 private:
  Descriptor event_;
};

/// Listens on an IP address of this machine. Throws Error with the address and the reason.
Descriptor listen_on(const Address& address);
/// The port on which the socket listens.
int port_of(const Descriptor& listening);
/// The next connection, if there is one, and the IP address of its other end ("10.0.0.7"). `full`: the limit of open
/// files is reached.
Descriptor accept_from(const Descriptor& listening, bool& full, std::string& from);
/// Tries each IP address of the name once. If all fail, `why` is the reason of the last.
std::optional<Descriptor> connect_to(const Address& address, Deadline deadline, std::string& why);
/// Waits until the descriptor can be read or is at its end. Returns false at the deadline.
bool wait_readable(const Descriptor& socket, Deadline deadline);
/// Milliseconds for poll(), rounded up, at most 1000.
int poll_ms(Deadline deadline);

} // namespace triax::os
