#include "control/server_thread.hpp"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "triax/error.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kRound{200}; // the longest wait
constexpr seconds kHelloTime{5};
constexpr std::size_t kMaxStrangers = 64;
constexpr int kAcceptsPerRound = 16; // then those that are there get their turn
constexpr rlim_t kOtherFiles = 64;   // that this process may want to open

Descriptor listen(const ServerRequest& request, Address& address) {
  TRIAX_REQUIRE(request.world > 0, "a job of {} ranks", request.world);
  address = {address_of_interface(request.interface), request.port};
  if (!request.token.given() && !is_loopback(address.host))
    throw Error(
        text("ranks are to meet at {}, where other machines reach them, and the job has no token", address.host),
        "control", "set TRIAX_JOB_TOKEN or launch.token_file, or leave launch.interface out");
  if (request.token.secret().size() > JobToken::kMaxBytes)
    throw Error(text("the token of the job is longer than {} bytes", JobToken::kMaxBytes), "control");
  rlimit files{};
  const rlim_t wanted = static_cast<rlim_t>(request.world) + kMaxStrangers + kOtherFiles;
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < wanted)
    throw Error(text("the server of {} ranks opens up to {} files, and this process may open {}", request.world, wanted,
                     files.rlim_cur),
                "control", "allow it more (ulimit -n)");
  return listen_on(address);
}

} // namespace

ServerThread::ServerThread(const ServerRequest& request)
    : request_(request),
      listening_(listen(request_, address_)),
      store_(request.world, [this](int rank, const Message& answer) { send(rank, answer); }),
      roster_(request.world) {
  address_.port = port_of(listening_);
}

void ServerThread::run() {
  std::vector<pollfd> waiting;
  Clock::time_point round = Clock::now();
  for (;;) {
    waiting.clear();
    {
      const std::lock_guard lock(mutex_);
      if (quit_) return;
      waiting.push_back({wake_.number(), POLLIN, 0});
      waiting.push_back({full_ ? -1 : listening_.number(), POLLIN, 0});
      for (const std::unique_ptr<Peer>& peer : peers_) {
        const std::size_t unsent = peer->connection.pending();
        const int events = (unsent > 0 ? POLLOUT : 0) | (unsent < kPauseBytes ? POLLIN : 0);
        waiting.push_back({peer->connection.socket().number(), static_cast<short>(events), 0});
      }
    }
    ::poll(waiting.data(), waiting.size(), static_cast<int>(kRound.count()));
    if (waiting[0].revents != 0) wake_.clear();

    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    // A process that was stopped has not listened.
    if (now - round > 10 * kRound) roster_.excuse(now - round);
    round = now;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (waiting[i + 2].revents != 0) serve(*peers_[i], now);
    }
    for (const std::unique_ptr<Peer>& peer : peers_) judge(*peer, now);
    remove_ended(now);
    accept_some(now);
  }
}

void ServerThread::accept_some(Clock::time_point now) {
  full_ = false;
  for (int i = 0; i < kAcceptsPerRound && !full_; ++i) {
    Descriptor socket = accept_from(listening_, full_);
    if (full_) drop_oldest_stranger();
    if (!socket) return;
    const auto strangers = std::count_if(peers_.begin(), peers_.end(),
                                         [](const std::unique_ptr<Peer>& peer) { return peer->rank == kStranger; });
    if (static_cast<std::size_t>(strangers) >= kMaxStrangers) drop_oldest_stranger();
    peers_.push_back(std::make_unique<Peer>(Peer{Connection(std::move(socket), kMaxHelloBytes), now}));
  }
}

/// They stand in the order in which they came.
void ServerThread::drop_oldest_stranger() {
  const auto oldest = std::find_if(peers_.begin(), peers_.end(),
                                   [](const std::unique_ptr<Peer>& peer) { return peer->rank == kStranger; });
  if (oldest != peers_.end()) peers_.erase(oldest);
}

void ServerThread::judge(Peer& peer, Clock::time_point now) {
  const bool expected = peer.rank == kStranger || peer.leaving;
  if (expected && now - peer.since > kHelloTime) peer.connection.end("it did not come to its point");
  if (expected) return;
  if (roster_.silent(peer.rank, request_.silence_s, now))
    peer.connection.end(text(
        "nothing was heard from it for {} s (train.stall_timeout_s): it is stopped, or its host or network is gone",
        request_.silence_s));
}

void ServerThread::remove_ended(Clock::time_point now) {
  // One by one: a loss is told to the others.
  const auto ended = [](const std::unique_ptr<Peer>& peer) { return peer->connection.ended(); };
  for (auto gone = peers_.end(); (gone = std::find_if(peers_.begin(), peers_.end(), ended)) != peers_.end();) {
    const std::unique_ptr<Peer> peer = std::move(*gone);
    peers_.erase(gone);
    if (peer->rank == kStranger || peer->leaving) continue;
    store_.drop(peer->rank);
    note({peer->rank, true, peer->connection.why()}, now);
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
    send_to_all(make_message(Kind::stop, signal));
  }
  wake_.wake(); // what could not be sent now is waited for
}

void ServerThread::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    note(failure, Clock::now());
  }
  wake_.wake();
}

std::optional<Failure> ServerThread::failure() const {
  const std::lock_guard lock(mutex_);
  return roster_.failure();
}

std::vector<RankStatus> ServerThread::ranks() const {
  const std::lock_guard lock(mutex_);
  return roster_.statuses(Clock::now());
}

std::vector<Told> ServerThread::take_told() {
  const std::lock_guard lock(mutex_);
  return std::exchange(told_, {});
}

} // namespace triax::control
