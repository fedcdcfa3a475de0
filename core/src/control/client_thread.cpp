// SPDX-License-Identifier: Apache-2.0
#include "control/client_thread.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "control/connect.hpp"
#include "triax/error.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kClientPoll{200};   // longest wait
constexpr double kGraceOfStuck = 1;        // seconds, to receive the positions of other ranks
constexpr std::size_t kMaxPosition = 1024; // bytes; longer positions are truncated

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string reason_of(const Message& failure) {
  const auto rank = failure.number;
  if (rank < 0) return failure.value;
  return text(failure.kind == Kind::lost ? "rank {} was lost: {}" : "rank {} failed: {}", rank, failure.value);
}

} // namespace

ClientThread::ClientThread(const ClientRequest& request, JobAbort& flag)
    : request_(request), flag_(flag), connection_(enter(request, flag)) {
  round_ = heard_ = next_beat_ = Clock::now();
}

ClientThread::~ClientThread() {
  if (relaying_.joinable()) relaying_.join();
}

void ClientThread::run() {
  for (;;) {
    wait();
    {
      const std::lock_guard lock(mutex_);
      if (quit_) return;
    }
    read();
    send_failure();
    send_asked_beat();
    if (Clock::now() >= next_beat_) beat(false);
    say_goodbye();
    check_silence();
    end_if_late();
  }
}

void ClientThread::wait() {
  pollfd waiting[2] = {{wake_.number(), POLLIN, 0}, {-1, 0, 0}};
  {
    const std::lock_guard lock(mutex_);
    if (quit_) return;
    if (!connection_.ended()) waiting[1].fd = connection_.socket().number();
    waiting[1].events = static_cast<short>(POLLIN | (connection_.pending() > 0 ? POLLOUT : 0));
  }
  const milliseconds until_beat(os::poll_ms(next_beat_));
  ::poll(waiting, 2, static_cast<int>(std::clamp(until_beat, milliseconds(1), kClientPoll).count()));
  if (waiting[0].revents != 0) wake_.clear();
}

void ClientThread::read() {
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    // A longer time than the longest wait: the process was stopped and could not receive.
    if (now - round_ > 2 * kClientPoll) heard_ += now - round_ - kClientPoll;
    round_ = now;
    connection_.flush();
    if (connection_.receive()) heard_ = now;
    while (const std::optional<std::string> frame = connection_.take()) {
      if (std::optional<Message> message = decode_message(*frame)) {
        messages.push_back(std::move(*message));
      } else {
        connection_.end("invalid protocol message");
      }
    }
  }
  for (Message& message : messages) take(message);
}

void ClientThread::take(Message& message) {
  switch (message.kind) {
    case Kind::failed:
    case Kind::lost:
      return handle_failure(message);
    case Kind::stop:
      if (request_.on_stop) request_.on_stop(static_cast<int>(message.number));
      return;
    case Kind::beat:
      return;
    default:
      break;
  }
  const std::lock_guard lock(mutex_);
  if (message.kind == Kind::goodbye) {
    leaving_ = Leaving::done;
  } else if (const auto call = calls_.find(message.id); call != calls_.end()) { // else the call has timed out
    call->second = std::move(message);
  }
  changed_.notify_all();
}

/// First sends the server the position of this rank at the time of the failure.
void ClientThread::handle_failure(const Message& failure) {
  beat(true);
  std::string reason = reason_of(failure);
  {
    const std::lock_guard lock(mutex_);
    if (!mark_aborted(reason)) return;
  }
  relay(static_cast<int>(failure.number), std::move(reason));
}

/// On a separate thread: if a listener hangs in abort(), this thread must still be able to end the process.
void ClientThread::relay(int rank, std::string reason) {
  const auto raise = [this, rank, reason = std::move(reason)] { flag_.relay(rank, reason); };
  try {
    relaying_ = std::thread(raise);
  } catch (const std::system_error&) { // cannot create a thread: set the flag on this one
    raise();
  }
}

void ClientThread::beat(bool has_seen_failure) {
  next_beat_ = Clock::now() + duration(beat_interval_s(request_.world, request_.silence_s));
  const RankProgress now = progress();
  const Message message =
      make_message(Kind::beat, encode_beat(has_seen_failure, now.stalled_s, now.waiting_s), position());
  const std::lock_guard lock(mutex_);
  // Does not queue more heartbeats for a server that does not read.
  if (leaving_ == Leaving::no && (has_seen_failure || connection_.pending() == 0)) send(message);
}

void ClientThread::send_asked_beat() {
  {
    const std::lock_guard lock(mutex_);
    if (!beat_asked_ || connection_.pending() > 0) return; // beat() would send nothing
  }
  beat(false);
  const std::lock_guard lock(mutex_);
  beat_asked_ = false;
  changed_.notify_all();
}

void ClientThread::send_failure() {
  {
    const std::lock_guard lock(mutex_);
    if (!unsent_) return;
  }
  Message message = failure_message();
  const std::lock_guard lock(mutex_);
  unsent_ = false;
  message.value = why_;
  const std::string ours = text("rank {} failed: ", request_.rank);
  if (message.value.starts_with(ours)) message.value.erase(0, ours.size()); // the server adds it again
  send(message);
}

/// Includes the time since the server was last heard: the server may be the cause of the failure.
Message ClientThread::failure_message() const {
  const RankProgress now = progress();
  const RankFailureKind why = now.is_stuck        ? RankFailureKind::stuck
                              : now.has_timed_out ? RankFailureKind::waiting
                                                  : RankFailureKind::error;
  const std::chrono::duration<double> since_server = Clock::now() - heard_;
  Message message = make_message(Kind::rank_failed, encode_rank_failed(why, since_server.count()));
  message.key = position();
  return message;
}

void ClientThread::say_goodbye() {
  const std::lock_guard lock(mutex_);
  if (leaving_ != Leaving::asked || unsent_) return;
  leaving_ = Leaving::sent;
  send(make_message(Kind::goodbye));
}

void ClientThread::check_silence() {
  const bool silent = Clock::now() - heard_ > duration(request_.silence_s);
  Message last = silent ? failure_message() : Message(); // a server that was stopped reads it later
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (leaving_ == Leaving::done || lost_) return;
    if (silent && !connection_.ended()) {
      last.value = text("no message from the job server for {} s", request_.silence_s);
      if (!aborted_) {
        send(last);
        send(make_message(Kind::goodbye));
      }
      connection_.end(text("no message from it for {} s", request_.silence_s));
    }
    if (!connection_.ended()) return;
    why = text("lost the connection to the job server at {}: {}", request_.server, connection_.why());
    lost_ = true;
    changed_.notify_all();
    if (leaving_ != Leaving::no || !mark_aborted(why)) return;
  }
  relay(-1, std::move(why));
}

void ClientThread::end_if_late() {
  const bool is_stuck = progress().is_stuck;
  const double grace_s = is_stuck ? std::min(request_.grace_s, kGraceOfStuck) : request_.grace_s;
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_ || leaving_ != Leaving::no || Clock::now() - aborted_at_ < duration(grace_s)) return;
    why = why_;
  }
  if (request_.before_end) request_.before_end();
  if (is_stuck) std::_Exit(1); // the error is already printed
  const std::string last =
      text("rank {} did not stop within {} s of an abort; terminating it: {}\n  its position: {}\n", request_.rank,
           request_.grace_s, why, position());
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last.data(), last.size());
  std::_Exit(1);
}

std::string ClientThread::position() const {
  std::string position = request_.position ? request_.position() : std::string();
  if (position.size() > kMaxPosition) position.resize(kMaxPosition);
  return position;
}

RankProgress ClientThread::progress() const {
  return request_.progress ? request_.progress() : RankProgress{};
}

void ClientThread::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.wake();
}

} // namespace triax::control
