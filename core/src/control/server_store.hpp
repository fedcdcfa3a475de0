// SPDX-License-Identifier: Apache-2.0
// The key-value store of a job server, and the requests that wait in it.
//
// Ownership: owns the values. Blocking: never; a request that must wait is answered later. Errors: none; an invalid
// request is answered with "refused".
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
  /// `send`: sends the answers.
  ServerStore(int world, std::function<void(int rank, const Message&)> send)
      : send_(std::move(send)), waiting_(static_cast<std::size_t>(world)) {}

  /// Handles a request: set, get, add, barrier or forget. Answers every request, of any rank, that can be answered now.
  void handle(int rank, Message request);
  std::int64_t counter(std::string_view key) const;
  /// The rank has disconnected: its requests get no answer.
  void drop(int rank);

 private:
  using Id = std::uint64_t;
  struct Waiting {
    bool in_barrier = false;
    std::string key;
  };
  struct Barrier {
    std::vector<std::optional<Id>> ids; // by rank, of the ranks that are in the barrier
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
  std::size_t bytes_ = 0; // of keys and values
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  std::vector<std::map<Id, Waiting>> waiting_;                  // by rank
  std::map<std::string, std::set<std::pair<int, Id>>> for_key_; // requests that wait for the key
  std::map<std::string, Barrier> barriers_;
};

} // namespace triax::control
