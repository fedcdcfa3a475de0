#include "control/client_thread.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "control/enter.hpp"
#include "triax/error.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kRound{200};     // the longest wait
constexpr double kAnswerTime = 5;       // for the answer to "forget"
constexpr std::size_t kMaxPlace = 1024; // bytes; what is longer is cut
constexpr std::size_t kMaxError = 64 << 10;

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// A server that may be silent for little time is asked more often.
Clock::duration beat_every(const ClientRequest& request) {
  return duration(std::min(1.0, request.silence_s / 4));
}

std::string reason_of(const Message& failure) {
  const auto rank = failure.number;
  if (rank < 0) return failure.value;
  return text(failure.kind == Kind::lost ? "rank {} was lost: {}" : "rank {} failed: {}", rank, failure.value);
}

Message make(Kind kind, std::string value = {}) {
  Message message;
  message.kind = kind;
  message.value = std::move(value);
  return message;
}

} // namespace

ClientThread::ClientThread(const ClientRequest& request, AbortFlag& flag)
    : request_(request), flag_(flag), connection_(enter(request, flag)) {
  round_ = heard_ = next_beat_ = Clock::now();
}

void ClientThread::run() {
  for (;;) {
    wait();
    {
      const std::lock_guard lock(mutex_);
      if (quit_) return;
    }
    read();
    tell_failure();
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
  const milliseconds until_beat(poll_ms(next_beat_));
  ::poll(waiting, 2, static_cast<int>(std::clamp(until_beat, milliseconds(1), kRound).count()));
  if (waiting[0].revents != 0) wake_.clear();
}

void ClientThread::read() {
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    const Deadline now = Clock::now();
    if (now - round_ > 10 * kRound) heard_ += now - round_; // a process that was stopped has not listened
    round_ = now;
    connection_.flush();
    connection_.receive();
    while (const std::optional<std::string> frame = connection_.take()) {
      heard_ = now;
      if (std::optional<Message> message = decode_message(*frame)) {
        messages.push_back(std::move(*message));
      } else {
        connection_.end("it sent what is no message of this protocol");
      }
    }
  }
  for (Message& message : messages) take(message);
}

void ClientThread::take(Message& message) {
  switch (message.kind) {
    case Kind::failed:
    case Kind::lost:
      return hear(message);
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
  } else if (const auto call = calls_.find(message.id); call != calls_.end()) { // else it was given up
    call->second = std::move(message);
  }
  changed_.notify_all();
}

/// First the server is told where this rank stood when it happened.
void ClientThread::hear(const Message& failure) {
  beat(true);
  const std::string reason = reason_of(failure);
  {
    const std::lock_guard lock(mutex_);
    mark_aborted(reason);
  }
  flag_.relay(static_cast<int>(failure.number), reason);
}

void ClientThread::beat(bool knows) {
  next_beat_ = Clock::now() + beat_every(request_);
  Message message = make(Kind::beat, place());
  message.number = knows ? 1 : 0;
  const std::lock_guard lock(mutex_);
  // A server that reads nothing need not be sent more of them.
  if (leaving_ == Leaving::no && (knows || connection_.pending() == 0)) send(message);
}

void ClientThread::tell_failure() {
  {
    const std::lock_guard lock(mutex_);
    if (!untold_) return;
  }
  Message message = make(Kind::gave_up);
  message.key = place();
  const std::lock_guard lock(mutex_);
  untold_ = false;
  message.value = why_;
  const std::string ours = text("rank {} failed: ", request_.rank);
  if (message.value.starts_with(ours)) message.value.erase(0, ours.size()); // the server says that itself
  send(message);
}

void ClientThread::say_goodbye() {
  const std::lock_guard lock(mutex_);
  if (leaving_ != Leaving::asked || untold_) return;
  leaving_ = Leaving::said;
  send(make(Kind::goodbye));
}

void ClientThread::check_silence() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (leaving_ == Leaving::done || lost_) return;
    if (Clock::now() - heard_ > duration(request_.silence_s))
      connection_.end(text("nothing was heard from it for {} s", request_.silence_s));
    if (!connection_.ended()) return;
    why = text("the server of the job at {} was lost: {}", request_.server, connection_.why());
    lost_ = true;
    changed_.notify_all();
    if (leaving_ != Leaving::no || !mark_aborted(why)) return;
  }
  flag_.relay(-1, why);
}

void ClientThread::end_if_late() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_ || leaving_ != Leaving::no || Clock::now() - aborted_at_ < duration(request_.grace_s)) return;
    why = why_;
  }
  const std::string last = text("rank {} has not ended within {} s of an abort, and is ended: {}\n  it was at: {}\n",
                                request_.rank, request_.grace_s, why, place());
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last.data(), last.size());
  std::_Exit(1);
}

std::string ClientThread::place() const {
  std::string place = request_.place ? request_.place() : std::string();
  if (place.size() > kMaxPlace) place.resize(kMaxPlace);
  return place;
}

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
  } catch (...) { // out of memory: told without its text is better than not told
    why_.clear();
  }
  changed_.notify_all();
  return true;
}

template <class Done>
void ClientThread::await(Lock& lock, Deadline deadline, Done done) {
  // Not wait_until(Deadline::max()): converting it to the system clock overflows in some libraries.
  while (!done()) {
    const Deadline now = Clock::now();
    if (now >= deadline) return;
    changed_.wait_for(lock, std::min<Clock::duration>(deadline - now, std::chrono::seconds(1)));
  }
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
    Message forget = make(Kind::forget);
    forget.id = id;
    send(forget);
    await(lock, deadline_in(std::min(kAnswerTime, request_.silence_s)), over);
  }
  const std::optional<Message> got = std::move(answer);
  calls_.erase(id);
  if (got && got->kind == Kind::refused) throw Error(got->value, where);
  if (got) return *got;
  if (aborted_) throw Error(why_, where);
  throw Error(text("the server of the job at {} {}", request_.server,
                   lost_ ? "was lost: " + connection_.why() : "does not answer"),
              where);
}

void ClientThread::post(Message message) {
  const std::lock_guard lock(mutex_);
  if (leaving_ != Leaving::no) throw Error("this rank has left its job", "control");
  if (lost_)
    throw Error(text("the server of the job at {} was lost: {}", request_.server, connection_.why()), "control");
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
  untold_ = true;
  wake_.wake();
}

void ClientThread::leave() {
  Lock lock(mutex_);
  if (leaving_ != Leaving::no) return;
  leaving_ = Leaving::asked;
  wake_.wake();
  const auto over = [this] { return leaving_ == Leaving::done || lost_; };
  const double patience_s = aborted_ ? std::min(request_.grace_s, request_.silence_s) : request_.silence_s;
  await(lock, deadline_in(patience_s), over);
  if (leaving_ == Leaving::done) return;
  throw Error(text("the server of the job at {} {} before it had heard all of this rank", request_.server,
                   lost_ ? "was lost (" + connection_.why() + ")" : "did not answer"),
              "control");
}

void ClientThread::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.wake();
}

} // namespace triax::control
