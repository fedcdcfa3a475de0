// What members of a group tell each other through the store, as NCCL has no words for it: that one aborts and why, that
// one leaves and what it had posted by then, that one has come to a barrier.
//
// Threads: the rank's main thread. Ownership: refers to store and group. Blocking: a call is a question to the store,
// and barrier() waits. Errors: barrier() throws Error; the others throw what the store throws.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"

namespace comm_nccl {

using namespace triax;

/// How many calls a member has posted, by what they need of whom.
struct Posted {
  explicit Posted(int members) : sends(static_cast<std::size_t>(members)), receives(sends.size()) {}
  std::uint64_t collectives = 0;
  std::vector<std::uint64_t> sends, receives; // by peer
};

class News {
 public:
  /// `key`: of this meeting of the group, and of no other.
  News(Store& store, std::string key, const Group& group);

  void tell_abort(std::string_view why);
  void tell_left(const Posted& posted);

  /// Looks whether something was told since; true: then ask.
  bool changed();
  /// The first reason.
  std::optional<std::string> aborted();
  /// What members that have left had posted; none for the others.
  const std::vector<std::optional<Posted>>& left() const { return left_; }

  /// Until all members are in their `turn`-th barrier. check() throws to give up.
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

} // namespace comm_nccl
