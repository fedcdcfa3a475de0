// SPDX-License-Identifier: Apache-2.0
#include "control/server_thread.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "control/all_wait.hpp"
#include "os/errno_text.hpp"
#include "os/open_files.hpp"
#include "triax/error.hpp"

namespace triax::control {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kServerPoll{200}; // longest wait
constexpr std::chrono::seconds kHelloTime{5};
constexpr std::size_t kMaxPending = 64;
constexpr std::size_t kMaxEvents = 256; // per round
constexpr int kLastRounds = 64;         // reads from a rank that failed, for its own reason
constexpr int kAcceptsPerRound = 64;    // then the connected ranks are served
constexpr rlim_t kOtherFiles = 64;      // open files for other uses of this process

os::Descriptor listen(const ServerRequest& request, os::Address& address) {
  TRIAX_REQUIRE(request.world > 0, "a job of {} ranks", request.world);
  address = {os::address_of_interface(request.interface), request.port};
  if (!request.token.given() && !os::is_loopback(address.host))
    throw Error(text("the job server at {} is reachable from other machines, but the job has no token", address.host),
                {}, "set TRIAX_JOB_TOKEN or launch.token_file, or leave launch.interface out");
  if (request.token.secret().size() > JobToken::kMaxBytes)
    throw Error(text("the job token is longer than {} bytes", JobToken::kMaxBytes), {}, kShortenToken);
  if (const std::optional<Error> error = open_files_error(request.world)) throw Error(*error);
  return os::listen_on(address);
}

os::Descriptor make_epoll() {
  os::Descriptor out(::epoll_create1(EPOLL_CLOEXEC));
  if (!out) throw Error(text("cannot create an epoll descriptor: {}", errno_text()), "job server");
  return out;
}

} // namespace

std::optional<Error> open_files_error(int world) {
  const rlim_t wanted = static_cast<rlim_t>(world) + kMaxPending + kOtherFiles;
  const rlim_t allowed = os::raise_open_file_limit(wanted);
  if (allowed >= wanted) return std::nullopt;
  return Error(
      text("a job server for {} ranks opens up to {} files; the limit of this process is {}", world, wanted, allowed),
      {}, "ask the administrator to raise the hard limit of open files (ulimit -Hn)");
}

ServerThread::ServerThread(const ServerRequest& request)
    : request_(request),
      listening_(listen(request_, address_)),
      epoll_(make_epoll()),
      by_rank_(static_cast<std::size_t>(request.world)),
      store_(request.world, [this](int rank, const Message& answer) { send(rank, answer); }),
      registry_(request.world) {
  address_.port = os::port_of(listening_);
  wait_for(wake_.number(), &wake_, EPOLLIN, EPOLL_CTL_ADD);
  wait_for(listening_.number(), this, EPOLLIN, EPOLL_CTL_ADD);
}

void ServerThread::wait_for(int descriptor, void* what, std::uint32_t events, int operation) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = what;
  ::epoll_ctl(epoll_.number(), operation, descriptor, &wanted);
}

void ServerThread::run() {
  std::array<epoll_event, kMaxEvents> events{};
  {
    const std::lock_guard lock(mutex_);
    round_ = Clock::now(); // ranks may have waited since the constructor; none has joined
  }
  for (bool accepting = true;;) {
    const int ready = ::epoll_wait(epoll_.number(), events.data(), kMaxEvents, static_cast<int>(kServerPoll.count()));
    const std::lock_guard lock(mutex_);
    if (quit_) return;
    const Clock::time_point now = Clock::now();
    check_absence(now);
    bool connections = full_; // try again after a round
    for (int i = 0; i < ready; ++i) {
      void* const what = events[static_cast<std::size_t>(i)].data.ptr;
      if (what == &wake_) {
        wake_.clear();
      } else if (what == this) {
        connections = true;
      } else {
        serve(*static_cast<Peer*>(what), now);
      }
    }
    if (now - checked_ >= kServerPoll) check_all_timeouts(now);
    remove_ended(now);
    if (connections) accept_some(now);
    remove_ended(now);
    // At the limit of open files, the connections that wait in the queue must not wake this thread all the time.
    if (accepting == full_) wait_for(listening_.number(), this, full_ ? 0U : EPOLLIN, EPOLL_CTL_MOD);
    accepting = !full_;
  }
}

/// A longer time than the longest wait: the process was stopped, or its machine was suspended or overloaded.
void ServerThread::check_absence(Clock::time_point now) {
  const Clock::duration since = now - std::exchange(round_, now);
  if (since > 2 * kServerPoll) registry_.excuse(since - kServerPoll, now);
}

void ServerThread::accept_some(Clock::time_point now) {
  full_ = false;
  for (int i = 0; i < kAcceptsPerRound && !full_; ++i) {
    std::string from;
    os::Descriptor socket = os::accept_from(listening_, full_, from);
    if (full_) drop_oldest_pending();
    if (!socket) return;
    if (pending_.size() >= kMaxPending) drop_oldest_pending();
    Peer& peer = pending_.emplace_back(Peer{Connection(std::move(socket), kMaxHelloBytes), now, std::move(from)});
    peer.self = std::prev(pending_.end());
    peer.events = EPOLLIN;
    wait_for(peer.connection.socket().number(), &peer, EPOLLIN, EPOLL_CTL_ADD);
    // Most have already sent their hello, so many ranks at once do not fill the list of pending connections.
    serve(peer, now);
  }
}

void ServerThread::drop_oldest_pending() {
  for (Peer& peer : pending_) {
    if (peer.ending) continue;
    return end(peer, "closed to accept other connections");
  }
}

void ServerThread::check_all_timeouts(Clock::time_point now) {
  checked_ = now;
  for (Peer& peer : pending_) check_timeouts(peer, now);
  for (Peer& peer : members_) check_timeouts(peer, now);
  if (const std::optional<Failure> all = registry_.all_wait(request_.silence_s + kAllWaitMargin_s)) note(*all, now);
}

void ServerThread::check_timeouts(Peer& peer, Clock::time_point now) {
  const bool is_unauthenticated = peer.rank == kNoRank;
  if (is_unauthenticated || peer.leaving) {
    if (now - peer.since <= kHelloTime) return;
    peer.suspect = true;
    return end(peer, "no handshake received in time");
  }
  if (registry_.silent(peer.rank, request_.silence_s, now))
    end(peer, text("no message from it for {} s (train.stall_timeout_s): its process may be stopped, or its host or "
                   "network down",
                   request_.silence_s));
}

void ServerThread::end(Peer& peer, std::string why) {
  peer.connection.end(std::move(why));
  update_events(peer);
}

/// Called after everything that a connection sends or receives: waits for its next events, or queues its removal.
void ServerThread::update_events(Peer& peer) {
  if (peer.connection.ended()) {
    if (!std::exchange(peer.ending, true)) ended_.push_back(&peer);
    return;
  }
  const std::size_t unsent = peer.connection.pending();
  const std::uint32_t events =
      (unsent > 0 || peer.paused ? std::uint32_t{EPOLLOUT} : 0U) | (unsent < kPauseBytes ? std::uint32_t{EPOLLIN} : 0U);
  if (std::exchange(peer.events, events) != events)
    wait_for(peer.connection.socket().number(), &peer, events, EPOLL_CTL_MOD);
}

void ServerThread::remove_ended(Clock::time_point now) {
  // One at a time: the others are sent the loss, and that may end their connections.
  while (!ended_.empty()) {
    Peer& peer = *ended_.back();
    ended_.pop_back();
    const int rank = peer.rank;
    const bool is_lost = rank != kNoRank && !peer.leaving;
    const std::string why = peer.connection.why();
    if (is_lost) by_rank_[static_cast<std::size_t>(rank)] = nullptr;
    if (rank == kNoRank && peer.suspect && !peer.leaving) rejections_.add(kNoRank, peer.from, "no valid handshake");
    // A child between clone and exec has a copy of the socket, so close() alone leaves the socket in the epoll set.
    wait_for(peer.connection.socket().number(), nullptr, 0, EPOLL_CTL_DEL);
    (rank == kNoRank ? pending_ : members_).erase(peer.self);
    if (!is_lost) continue;
    store_.drop(rank);
    note({rank, true, why}, now);
  }
}

void ServerThread::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.wake();
}

void ServerThread::stop(int signal) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = signal;
    send_to_all(make_message(Message::Kind::stop, signal));
  }
  wake_.wake(); // waits for sockets that could not send now
}

void ServerThread::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    check_absence(now);
    // The rank's own reason may be among its last messages. A rank that floods the server must not hold it up.
    for (int round = 0; round < kLastRounds; ++round)
      if (Peer* peer = peer_of(failure.rank); !peer || !serve(*peer, now)) break;
    note(failure, now);
  }
  wake_.wake();
}

std::optional<Failure> ServerThread::failure() const {
  const std::lock_guard lock(mutex_);
  return registry_.failure();
}

std::optional<Clock::time_point> ServerThread::failed_at() const {
  const std::lock_guard lock(mutex_);
  return registry_.failed_at();
}

std::vector<RankStatus> ServerThread::ranks() const {
  const std::lock_guard lock(mutex_);
  return registry_.statuses(Clock::now());
}

int ServerThread::joined() const {
  const std::lock_guard lock(mutex_);
  return registry_.joined();
}

std::vector<int> ServerThread::missing() const {
  const std::lock_guard lock(mutex_);
  return registry_.missing();
}

std::int64_t ServerThread::counter(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return store_.counter(key);
}

Rejections ServerThread::rejections() const {
  const std::lock_guard lock(mutex_);
  return rejections_;
}

std::vector<WorkerMessage> ServerThread::drain_worker_messages() {
  const std::lock_guard lock(mutex_);
  return worker_messages_.drain();
}

} // namespace triax::control
