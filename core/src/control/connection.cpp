// SPDX-License-Identifier: Apache-2.0
#include "control/connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "os/errno_text.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

constexpr std::size_t kMaxUnsentBytes = 64 << 20;

bool later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

} // namespace

bool Connection::receive() {
  if (ended()) return false;
  std::array<char, 64 << 10> bytes; // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t got = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
  if (got > 0) {
    reader_.append({bytes.data(), static_cast<std::size_t>(got)});
    if (reader_.too_long()) end("it announced a message above the size limit");
  } else if (got == 0 || errno == ECONNRESET) { // reset: the other end closed with unread bytes
    end("the connection was closed");
  } else if (!later(errno)) {
    end(text("the connection failed: {}", errno_text()));
  }
  return got > 0;
}

std::optional<std::string> Connection::take() {
  std::optional<std::string> frame = reader_.take();
  if (!frame && reader_.too_long()) end("it announced a message above the size limit");
  return frame;
}

void Connection::skip() {
  receive();
  while (reader_.take()) {
  }
}

void Connection::send(std::string_view frame) {
  if (ended() || deaf_) return;
  if (sent_ > out_.size() / 2) { // a slow reader may never empty the queue: discard what was sent
    out_.erase(0, sent_);
    sent_ = 0;
  }
  if (pending() + frame.size() > kMaxUnsentBytes) return end("it does not read its messages");
  out_.append(frame);
  flush();
}

void Connection::flush() {
  while (!ended() && !deaf_ && pending() > 0) {
    const ssize_t sent = ::send(socket_.number(), out_.data() + sent_, pending(), MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    deaf_ = !later(errno);
    break;
  }
  if (deaf_ || pending() == 0) {
    std::string().swap(out_);
    sent_ = 0;
  }
}

void Connection::finish() {
  ::shutdown(socket_.number(), SHUT_WR);
}

void Connection::end(std::string why) {
  if (!ended()) why_ = std::move(why);
}

} // namespace triax::control
