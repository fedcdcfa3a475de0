// SPDX-License-Identifier: Apache-2.0
// The key-value store of a server, and who waits for what in it.
//
// Threads: one at a time. Ownership: owns the values. Blocking: never; who has to wait gets no answer yet. Errors:
// none; a request that makes no sense is answered "refused".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/wire.hpp"

namespace triax::control {

class ServerStore {
 public:
  /// `send`: takes the answers.
  ServerStore(int world, std::function<void(int rank, const Message&)> send)
      : send_(std::move(send)), waiting_(static_cast<std::size_t>(world)) {}

  /// Takes a request: set, get, add, barrier or forget. Answers what can be answered now, this rank and those that
  /// waited for it.
  void handle(int rank, Message request);
  std::int64_t counter(std::string_view key) const;
  /// The rank has gone; nobody waits for an answer there.
  void drop(int rank);

 private:
  using Id = std::uint64_t;
  struct Waiting {
    bool in_barrier = false;
    std::string key;
  };
  struct Barrier {
    std::vector<std::optional<Id>> ids; // by rank, of those that are in it
    std::size_t count = 0;
  };

  void answer(int rank, Id id, Message::Kind kind, std::string value = {}) const;
  void set(int rank, Message& request);
  void barrier(int rank, const Message& request);
  void forget(int rank, Id id);
  /// "1, 3-7"
  std::string missing(const std::string& barrier) const;
  void stop_waiting(int rank, const Waiting& waits, Id id);

  const std::function<void(int, const Message&)> send_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  std::vector<std::map<Id, Waiting>> waiting_;                  // by rank
  std::map<std::string, std::set<std::pair<int, Id>>> for_key_; // who waits for it
  std::map<std::string, Barrier> barriers_;
};

} // namespace triax::control
