// What a server knows of its ranks, and of the job's first failure.
//
// Threads: one at a time. Ownership: values. Blocking: never; the time is told by the caller. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/server.hpp"
#include "control/wire.hpp"
#include "triax/device.hpp"

namespace triax::control {

class Roster {
 public:
  explicit Roster(int world) : ranks_(static_cast<std::size_t>(world)) {}

  /// Why a rank cannot come in; empty: it can.
  std::string refusal(const Hello& hello) const;
  void came(const Hello& hello, Clock::time_point now);
  void heard(int rank, Clock::time_point now) { of(rank).heard = now; }
  void is_at(int rank, std::string place, Clock::time_point now);
  /// It was told of the failure and lives: its going, if it goes, is no cause.
  void knows(int rank) { of(rank).knows = true; }
  void left(int rank) { of(rank).status.state = RankStatus::State::left; }
  /// Nobody listened for that long: it does not count as the ranks' silence.
  void excuse(Clock::duration absence);
  bool silent(int rank, double seconds, Clock::time_point now) const;

  /// True: it is the first, and has to be told to all.
  bool note(const Failure& failure, Clock::time_point now);
  const std::optional<Failure>& failure() const { return failure_; }
  std::vector<RankStatus> statuses(Clock::time_point now) const;

 private:
  struct Entry {
    RankStatus status;
    Clock::time_point heard{}, placed{};
    bool knows = false;
  };

  Entry& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Entry& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool has(int rank) const { return rank >= 0 && rank < static_cast<int>(ranks_.size()); }
  bool is_cause(const Failure& failure, Clock::time_point now) const;

  std::vector<Entry> ranks_;
  std::optional<Failure> failure_;
  Clock::time_point first_{}; // when a failure was noted first
};

} // namespace triax::control
