// SPDX-License-Identifier: Apache-2.0
// Group status in the store, which NCCL does not provide: a member's abort and its reason, a member's departure and the
// number of its posts, and barriers.
//
// Threads: the rank's main thread. Blocking: each call queries the store; barrier() waits. Errors: barrier() throws
// Error; the other calls throw the store's errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::comm_nccl {

/// Numbers of calls that a member has posted: collectives, and sends and receives per peer.
struct Posted {
  explicit Posted(int members) : sends(static_cast<std::size_t>(members)), receives(sends.size()) {}
  std::uint64_t collectives = 0;
  std::vector<std::uint64_t> sends, receives; // by peer
};

class GroupStatus {
 public:
  /// `key`: prefix of the store's keys for this join of the group.
  GroupStatus(Store& store, std::string key, const Group& group);

  void announce_abort(std::string_view why);
  void announce_left(const Posted& posted);

  /// True if the status has changed since the last call; then query it.
  bool changed();
  /// The first reason.
  std::optional<std::string> aborted();
  /// For each member that has left, its posts; empty for the others.
  const std::vector<std::optional<Posted>>& left() const { return left_; }

  /// Returns when all members are in their `turn`-th barrier. check() throws to end the wait.
  void barrier(std::uint64_t turn, Deadline deadline, const std::function<void()>& check);

 private:
  void read_left(int member);
  std::string late(std::uint64_t turn);
  std::string member_key(std::string_view what, int member) const;

  Store& store_;
  const std::string key_;
  const Group& group_;
  std::int64_t seen_ = 0;
  std::vector<std::optional<Posted>> left_;
};

} // namespace triax::comm_nccl
