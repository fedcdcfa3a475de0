// SPDX-License-Identifier: Apache-2.0
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
  /// `stalled_s`: for how long it has made no progress there.
  void is_at(int rank, std::string place, Clock::time_point now, double stalled_s = 0);
  /// The failure that it is about to tell: it waited for others in vain.
  void timed_out(int rank) { of(rank).has_timed_out = true; }
  /// It was told of the failure and lives: its going, if it goes, is no cause.
  void knows(int rank) { of(rank).knows = true; }
  void left(int rank) { of(rank).status.state = RankStatus::State::left; }
  /// The server did not run for that long, until `now`: it does not count as the ranks' silence.
  void excuse(Clock::duration absence, Clock::time_point now);
  /// The failure to note when a rank gives up that has not heard the server for unheard_s, where server and ranks may
  /// be silent for limit_s. It is the server's where the server did not run for most of the time.
  Failure cause_of(Failure given_up, double unheard_s, double limit_s, Clock::time_point now) const;
  bool silent(int rank, double seconds, Clock::time_point now) const;

  /// True: it is the first, and has to be told to all.
  bool note(const Failure& failure, Clock::time_point now);
  const std::optional<Failure>& failure() const { return failure_; }
  /// When the first failure was noted, also where another has taken its place; nothing: none was.
  std::optional<Clock::time_point> failed_at() const { return failure_ ? std::optional(first_) : std::nullopt; }
  std::vector<RankStatus> statuses(Clock::time_point now) const;
  /// Ranks that have joined, whatever has become of them since.
  int joined() const { return joined_; }
  std::vector<int> missing() const;

 private:
  struct Entry {
    RankStatus status;
    Clock::time_point heard{}, placed{};
    bool knows = false, has_timed_out = false;
    double stalled_s = 0; // when it was placed
  };

  Entry& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Entry& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool has(int rank) const { return rank >= 0 && rank < static_cast<int>(ranks_.size()); }
  std::optional<Failure> stuck_rank(Clock::time_point now) const;
  bool is_cause(const Failure& failure, Clock::time_point now) const;

  std::vector<Entry> ranks_;
  std::optional<Failure> failure_;
  Clock::time_point first_{}; // when a failure was noted first
  int joined_ = 0;
  Clock::duration absence_{}; // the last time that the server did not run
  Clock::time_point absence_ended_{};
};

} // namespace triax::control
