// SPDX-License-Identifier: Apache-2.0
// One end of a connection: frames in and out of a socket that never blocks.
//
// Threads: one at a time. Ownership: owns its socket and what has not been sent. Blocking: never. Errors: none; a
// connection that has ended says why.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/socket.hpp"
#include "control/wire.hpp"

namespace triax::control {

class Connection {
 public:
  /// `limit`: of the frames that it receives.
  Connection(Descriptor socket, std::size_t limit) : socket_(std::move(socket)), reader_(limit) {}

  const Descriptor& socket() const noexcept { return socket_; }
  void set_limit(std::size_t bytes) noexcept { reader_.set_limit(bytes); }

  /// Takes what there is to read, 64 KiB at most; true: there was something.
  bool receive();
  /// The next frame that was received; they can be taken after the end as well.
  std::optional<std::string> take();
  /// Receives, and forgets it.
  void skip();

  /// Queues a frame, and sends what the socket takes. The connection ends where that leaves more than 64 MiB.
  void send(std::string_view frame);
  /// Sends more of what is queued.
  void flush();
  /// Bytes that wait to be sent.
  std::size_t pending() const noexcept { return out_.size() - sent_; }
  /// Nothing more will be sent. What was is still on its way.
  void finish();

  void end(std::string why);
  bool ended() const noexcept { return !why_.empty(); }
  /// "its connection closed"
  const std::string& why() const noexcept { return why_; }

 private:
  Descriptor socket_;
  FrameReader reader_;
  std::string out_;
  std::size_t sent_ = 0; // of out_
  bool deaf_ = false;    // the other end takes nothing more; what it has said can still be read
  std::string why_;      // it ended
};

} // namespace triax::control
