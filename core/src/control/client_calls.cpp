// SPDX-License-Identifier: Apache-2.0
// The calls that a rank's threads make on its client.
#include <algorithm>
#include <chrono>
#include <utility>

#include "control/client_thread.hpp"
#include "triax/error.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

constexpr double kAnswerTime = 5;           // seconds for the answer to "forget"
constexpr std::size_t kMaxError = 64 << 10; // bytes; longer errors are truncated

} // namespace

void ClientThread::send(const Message& message) {
  connection_.send(encode(message));
  if (connection_.pending() > 0) wake_.wake();
}

bool ClientThread::mark_aborted(std::string_view why) noexcept {
  if (aborted_) return false;
  aborted_ = true;
  aborted_at_ = Clock::now();
  try {
    why_ = why.substr(0, kMaxError);
  } catch (...) { // out of memory: abort without the reason
    why_.clear();
  }
  changed_.notify_all();
  return true;
}

template <class Done>
void ClientThread::await(Lock& lock, Deadline deadline, Done done) {
  // Not wait_until(Deadline::max()): its conversion to the system clock overflows in some libraries.
  WaitDeadline until(deadline);
  while (!done() && !until.passed()) changed_.wait_for(lock, until.slice());
}

Message ClientThread::call(Message request, Deadline deadline, const std::string& where) {
  Lock lock(mutex_);
  if (aborted_) throw Error(why_, where);
  if (leaving_ != Leaving::no) throw Error("this rank has left its job", where);
  const std::uint64_t id = request.id = ++last_id_;
  std::optional<Message>& answer = calls_[id];
  send(request);
  const auto over = [&] { return answer || aborted_ || lost_; };
  await(lock, deadline, over);
  if (!over()) {
    Message forget = make_message(Kind::forget);
    forget.id = id;
    send(forget);
    await(lock, deadline_in(std::min(kAnswerTime, request_.silence_s)), over);
  }
  const std::optional<Message> got = std::move(answer);
  calls_.erase(id);
  if (got && got->kind == Kind::refused) throw Error(got->value, where);
  if (got) return *got;
  if (aborted_) throw Error(why_, where);
  throw Error(
      text("the job server at {} {}", request_.server, lost_ ? "was lost: " + connection_.why() : "does not answer"),
      where);
}

void ClientThread::post(Message message) {
  const std::lock_guard lock(mutex_);
  if (leaving_ != Leaving::no) throw Error("this rank has left its job");
  if (lost_) throw Error(text("lost the connection to the job server at {}: {}", request_.server, connection_.why()));
  message.id = ++last_id_;
  send(message);
}

bool ClientThread::aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

void ClientThread::abort(std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  if (leaving_ != Leaving::no || !mark_aborted(why)) return;
  unsent_ = true;
  wake_.wake();
}

void ClientThread::send_position(double timeout_s) noexcept {
  Lock lock(mutex_);
  beat_asked_ = true;
  wake_.wake();
  await(lock, deadline_in(timeout_s), [this] { return lost_ || (!beat_asked_ && connection_.pending() == 0); });
}

void ClientThread::leave() {
  Lock lock(mutex_);
  if (leaving_ != Leaving::no) return;
  leaving_ = Leaving::asked;
  wake_.wake();
  const auto over = [this] { return leaving_ == Leaving::done || lost_; };
  const double timeout_s = aborted_ ? std::min(request_.grace_s, request_.silence_s) : request_.silence_s;
  await(lock, deadline_in(timeout_s), over);
  if (leaving_ == Leaving::done) return;
  throw Error(text("the job server at {} {} before it received all messages of this rank", request_.server,
                   lost_ ? "was lost (" + connection_.why() + ")" : "did not answer"));
}

} // namespace triax::control
