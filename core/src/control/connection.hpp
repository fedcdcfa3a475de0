// SPDX-License-Identifier: Apache-2.0
// One end of a connection: sends and receives frames through a non-blocking socket.
//
// Ownership: owns its socket and unsent bytes. Errors: none; why() says why a connection has ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/wire.hpp"
#include "os/socket.hpp"

namespace triax::control {

class Connection {
 public:
  /// `limit`: size of the largest frame to receive.
  Connection(os::Descriptor socket, std::size_t limit) : socket_(std::move(socket)), reader_(limit) {}

  const os::Descriptor& socket() const noexcept { return socket_; }
  void set_limit(std::size_t bytes) noexcept { reader_.set_limit(bytes); }

  /// Reads what is available, at most 64 KiB; returns whether anything was.
  bool receive();
  /// The next received frame, also after the end of the connection.
  std::optional<std::string> take();
  /// Receives and discards.
  void skip();

  /// Queues a frame and sends as much as the socket accepts. Ends the connection if more than 64 MiB remain queued.
  void send(std::string_view frame);
  /// Sends more of the queue.
  void flush();
  /// Bytes in the queue.
  std::size_t pending() const noexcept { return out_.size() - sent_; }
  /// Closes the sending direction. Bytes already sent still arrive.
  void finish();

  void end(std::string why);
  bool ended() const noexcept { return !why_.empty(); }
  /// "the connection was closed"
  const std::string& why() const noexcept { return why_; }

 private:
  os::Descriptor socket_;
  FrameReader reader_;
  std::string out_;
  std::size_t sent_ = 0; // bytes of out_ that are sent
  bool deaf_ = false;    // the other end accepts no more bytes; what it sent can still be read
  std::string why_;      // why it ended
};

} // namespace triax::control
