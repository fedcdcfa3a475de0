// SPDX-License-Identifier: Apache-2.0
// A job server and its ranks for tests: clients in this process, and raw connections that send what no client sends.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "control/client.hpp"
#include "control/connection.hpp"
#include "control/server.hpp"
#include "control/wire.hpp"
#include "os/socket.hpp"

namespace triax::control::test {

inline constexpr double kLong = 60; // seconds; only a failing test waits this long

/// Waits until a condition holds that another thread or process fulfils.
inline bool eventually(const std::function<bool()>& there) {
  for (const Deadline end = deadline_in(kLong); Clock::now() < end;) {
    if (there()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return there();
}

inline ServerRequest server_of(int world, double silence_s = kLong) {
  ServerRequest request;
  request.world = world;
  request.silence_s = silence_s;
  return request;
}

inline ClientRequest client_of(const os::Address& server, int rank, int world) {
  ClientRequest request;
  request.server = server;
  request.rank = rank;
  request.world = world;
  request.start_timeout_s = request.silence_s = request.grace_s = kLong;
  return request;
}

/// A rank in this process.
struct TestRank {
  explicit TestRank(const ClientRequest& request) : client(request, flag) {}
  JobAbort flag;
  Client client;
};

/// A started server, and ranks on request.
struct Job {
  explicit Job(int ranks) : Job(server_of(ranks)) {}
  explicit Job(const ServerRequest& request) : world(request.world), server(std::make_unique<Server>(request)) {
    server->start();
  }

  ClientRequest request(int rank) const { return client_of(server->address(), rank, world); }
  std::unique_ptr<TestRank> rank(int number) const { return std::make_unique<TestRank>(request(number)); }
  RankStatus::State state(int rank) const { return status(rank).state; }
  RankStatus status(int rank) const { return server->ranks()[static_cast<std::size_t>(rank)]; }

  int world;
  std::unique_ptr<Server> server;
};

/// A connection on which the test sends and receives every byte itself.
class Raw {
 public:
  explicit Raw(os::Descriptor socket) : connection(std::move(socket), kMaxFrameBytes) {}
  explicit Raw(const os::Address& to) : Raw(connected(to)) {}
  /// Joins as a rank.
  Raw(const os::Address& to, const Hello& hello) : Raw(to) {
    connection.send(encode(hello));
    if (const auto answer = next(); !answer || answer->kind != Message::Kind::welcome)
      throw std::runtime_error("not welcome");
  }

  /// The next frame; empty at the end of the connection.
  std::optional<std::string> frame() {
    for (;;) {
      if (std::optional<std::string> got = connection.take()) return got;
      if (connection.ended()) return std::nullopt;
      if (!os::wait_readable(connection.socket(), deadline_in(kLong))) throw std::runtime_error("nothing came");
      connection.receive();
    }
  }
  std::optional<Message> next() {
    const std::optional<std::string> got = frame();
    return got ? decode_message(*got) : std::nullopt;
  }
  /// The next message of this kind.
  std::optional<Message> next(Message::Kind kind) {
    for (;;) {
      std::optional<Message> got = next();
      if (!got || got->kind == kind) return got;
    }
  }
  /// True if the other end closes, after any messages.
  bool is_dropped() {
    while (next()) {
    }
    return connection.ended();
  }

  Connection connection;

 private:
  static os::Descriptor connected(const os::Address& to) {
    std::string why;
    std::optional<os::Descriptor> socket = os::connect_to(to, deadline_in(kLong), why);
    if (!socket) throw std::runtime_error(why);
    return std::move(*socket);
  }
};

inline Message message(Message::Kind kind, std::uint64_t id = 0, std::string key = {}, std::string value = {}) {
  Message made;
  made.kind = kind;
  made.id = id;
  made.key = std::move(key);
  made.value = std::move(value);
  return made;
}

inline Hello hello_of(int rank, int world, std::string token = {}) {
  Hello hello;
  hello.rank = rank;
  hello.world = world;
  hello.host = "test";
  hello.token = std::move(token);
  return hello;
}

} // namespace triax::control::test
