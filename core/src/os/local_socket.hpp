// SPDX-License-Identifier: Apache-2.0
// Connections between processes of one user on this machine that exchange lines. The address is a name without a file
// (Linux, unix(7): abstract sockets), so nothing is left behind by processes that are killed.
//
// Threads: one at a time. Ownership: owns the sockets. Blocking: only read_line() and write_line(). Errors: Error with
// the name if the operating system refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/descriptor.hpp"
#include "triax/device.hpp"

namespace triax::os {

/// One end of a connection.
class LocalConnection {
 public:
  explicit LocalConnection(Descriptor socket) : socket_(std::move(socket)) {}
  /// Connects to a process that listens.
  static LocalConnection to(const std::string& name);

  int number() const noexcept { return socket_.number(); }
  /// The next line without its newline; empty if none has arrived at the deadline, or if the other end has closed the
  /// connection.
  std::optional<std::string> read_line(Deadline deadline);
  /// Whether the other end has closed the connection.
  bool is_closed() const noexcept { return closed_; }
  /// If the other end has closed the connection, the line is lost.
  void write_line(std::string_view line);

 private:
  std::optional<std::string> take_line();

  Descriptor socket_;
  std::string partial_;
  bool closed_ = false;
};

/// Listens under a name that no other process uses.
class LocalListener {
 public:
  explicit LocalListener(std::string name);

  const std::string& name() const noexcept { return name_; }
  int number() const noexcept { return socket_.number(); }
  /// The next connection of a process of this user, if there is one. Closes those of other users.
  std::optional<LocalConnection> accept();

 private:
  std::string name_;
  Descriptor socket_;
};

} // namespace triax::os
