// SPDX-License-Identifier: Apache-2.0
// TCP sockets as the control plane uses them: not blocking, closed on exec, without delay.
//
// Threads: one at a time; Wake::wake() from any. Ownership: values. Blocking: connect_to() until
// its deadline, and resolving a name may ask the network. Errors: Error where the machine refuses; of a connection that
// fails, the reason as text.
#pragma once

#include <optional>
#include <string>

#include "control/address.hpp"
#include "control/descriptor.hpp"
#include "triax/device.hpp"

namespace triax::control {

/// Ends a poll() of another thread.
class Wake {
 public:
  Wake();
  int number() const noexcept { return event_.number(); }
  void wake() noexcept;
  /// After the poll().
  void clear() noexcept;

 private:
  Descriptor event_;
};

/// Listens on a number of this machine. Throws Error naming address and reason.
Descriptor listen_on(const Address& address);
/// The port it listens on.
int port_of(const Descriptor& listening);
/// The next connection, if there is one, and the number of its other end ("10.0.0.7"); `full`: this process may open no
/// more files.
Descriptor accept_from(const Descriptor& listening, bool& full, std::string& from);
/// One attempt at each number of the address. None: `why` says what became of the last.
std::optional<Descriptor> connect_to(const Address& address, Deadline deadline, std::string& why);
/// Until the descriptor can be read or is at its end, at most until the deadline; false: the deadline was first.
bool wait_readable(const Descriptor& socket, Deadline deadline);
/// Milliseconds for poll(), rounded up; at most a second.
int poll_ms(Deadline deadline);

} // namespace triax::control
