// SPDX-License-Identifier: Apache-2.0
// Simulates many ranks of one job in one thread. The connections speak the wire protocol without blocking, for tests
// and benchmarks of the job server with more ranks than one machine can run as processes.
//
// Threads: one. Ownership: owns its sockets. Blocking: every function, until its deadline. Errors: std::runtime_error
// with the number of ranks that missed the deadline.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "control/connection.hpp"
#include "control/job.hpp"
#include "control/wire.hpp"

namespace triax::control::test {

class SimulatedRanks {
 public:
  using Kind = Message::Kind;

  SimulatedRanks(os::Address server, int world, std::string token = {})
      : server_(std::move(server)), token_(std::move(token)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    ranks_.resize(static_cast<std::size_t>(world));
  }

  int world() const { return static_cast<int>(ranks_.size()); }
  /// Connections that the server closed before it welcomed the rank, and that were opened again.
  int retries() const { return retries_; }

  void join(Deadline deadline) {
    for (int rank = 0; rank < world(); ++rank) {
      connect(rank, deadline);
      if (rank % kBurst == 0) serve(0);
    }
    until_each(Kind::welcome, 1, deadline);
  }

  void send(int rank, const Message& message) {
    Rank& to = *ranks_[static_cast<std::size_t>(rank)];
    to.connection.send(encode(message));
    watch(to, rank, EPOLL_CTL_MOD);
  }
  void send_to_all(const std::function<Message(int rank)>& make) {
    for (int rank = 0; rank < world(); ++rank) {
      send(rank, make(rank));
      if (rank % kBurst == 0) serve(0);
    }
  }

  /// Waits until every rank has received `count` messages of the kind since forget().
  void until_each(Kind kind, int count, Deadline deadline) {
    for (;;) {
      int late = 0;
      for (int rank = 0; rank < world(); ++rank) late += received(rank, kind) < count;
      if (late == 0) return;
      if (Clock::now() >= deadline)
        throw std::runtime_error(
            text("{} of {} ranks did not receive message {} in time", late, world(), static_cast<int>(kind)));
      serve(20);
    }
  }
  int received(int rank, Kind kind) const {
    const auto& of = ranks_[static_cast<std::size_t>(rank)];
    return of ? of->received[static_cast<std::size_t>(kind)] : 0;
  }
  /// The rank's last message with a value or number.
  const Message& last(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->last; }
  void forget() {
    for (const auto& rank : ranks_) rank->received.fill(0);
  }

  /// Reads received messages, and waits up to `timeout_ms` for the first. Calls `on_message` for each.
  void serve(int timeout_ms, const std::function<void(int rank, const Message&)>& on_message = {}) {
    std::array<epoll_event, 256> ready{};
    const int count = ::epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const int number = static_cast<int>(ready[static_cast<std::size_t>(i)].data.u32);
      Rank& rank = *ranks_[static_cast<std::size_t>(number)];
      rank.connection.flush();
      rank.connection.receive();
      while (const std::optional<std::string> frame = rank.connection.take()) {
        std::optional<Message> message = decode_message(*frame);
        if (!message) throw std::runtime_error("the server sent an invalid message");
        ++rank.received[static_cast<std::size_t>(message->kind)];
        if (on_message) on_message(number, *message);
        rank.last = std::move(*message);
      }
      if (rank.connection.ended()) {
        reconnect(number);
      } else {
        watch(rank, number, EPOLL_CTL_MOD);
      }
    }
  }

 private:
  static constexpr int kBurst = 16; // sends before answers are read
  static constexpr std::size_t kKinds = 32;

  struct Rank {
    explicit Rank(os::Descriptor socket) : connection(std::move(socket), kMaxFrameBytes) {}
    Connection connection;
    std::array<int, kKinds> received{};
    Message last;
    bool writing = false;
  };

  void connect(int rank, Deadline deadline) {
    std::string why;
    std::optional<os::Descriptor> socket = os::connect_to(server_, deadline, why);
    if (!socket) throw std::runtime_error("simulated rank: " + why);
    auto& to = ranks_[static_cast<std::size_t>(rank)];
    to = std::make_unique<Rank>(std::move(*socket));
    to->connection.send(encode(hello_of(rank, world(), token_)));
    watch(*to, rank, EPOLL_CTL_ADD);
  }

  void reconnect(int rank) {
    const Rank& of = *ranks_[static_cast<std::size_t>(rank)];
    if (of.received[static_cast<std::size_t>(Kind::welcome)] == 0 &&
        of.received[static_cast<std::size_t>(Kind::refused)] == 0) {
      ++retries_;
      return connect(rank, deadline_in(kLong));
    }
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, of.connection.socket().number(), nullptr);
  }

  void watch(Rank& rank, int number, int operation) {
    const bool writing = rank.connection.pending() > 0;
    if (operation == EPOLL_CTL_MOD && writing == rank.writing) return;
    rank.writing = writing;
    epoll_event wanted{};
    wanted.events = EPOLLIN | (writing ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
    wanted.data.u32 = static_cast<std::uint32_t>(number);
    ::epoll_ctl(epoll_.number(), operation, rank.connection.socket().number(), &wanted);
  }

  const os::Address server_;
  const std::string token_;
  const os::Descriptor epoll_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  int retries_ = 0;
};

} // namespace triax::control::test
