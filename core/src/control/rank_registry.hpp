// SPDX-License-Identifier: Apache-2.0
// The job server's state of all ranks, and the job's first failure.
//
// The caller passes the time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/server.hpp"
#include "control/wire.hpp"
#include "triax/device.hpp"

namespace triax::control {

/// Times of a rank without progress at its position.
struct Stall {
  double stalled_s = 0; // in one call
  double waiting_s = 0; // in one wait for other ranks
};

class RankRegistry {
 public:
  explicit RankRegistry(int world) : ranks_(static_cast<std::size_t>(world)) {}

  /// Why a rank cannot join; empty if it can.
  std::string refusal(const Hello& hello) const;
  void add(const Hello& hello, Clock::time_point now);
  void heard(int rank, Clock::time_point now) { of(rank).heard = now; }
  void set_position(int rank, std::string position, Clock::time_point now, const Stall& stall = {});
  /// The failure that the rank is about to report is a timeout of a wait for other ranks.
  void timed_out(int rank) { of(rank).has_timed_out = true; }
  /// The rank acknowledged the failure. If it disconnects later, that is not the root cause.
  void set_seen_failure(int rank) { of(rank).has_seen_failure = true; }
  void left(int rank);
  /// The server did not run for this time, until `now`. The time does not count as silence of the ranks.
  void excuse(Clock::duration absence, Clock::time_point now);
  /// The failure to record when a rank fails that has not heard the server for since_server_s, with limit_s as the
  /// longest silence allowed. If the server did not run for most of that time, the failure is the server's.
  Failure cause_of(Failure reported, double since_server_s, double limit_s, Clock::time_point now) const;
  bool silent(int rank, double seconds, Clock::time_point now) const;
  /// The failure to record if every rank has waited for others for at least limit_s, so that none can continue. Empty:
  /// a rank is missing or does something else, or the job has failed already.
  std::optional<Failure> all_wait(double limit_s) const;

  /// Returns whether it is the first failure, which must be sent to all ranks.
  bool note(const Failure& failure, Clock::time_point now);
  const std::optional<Failure>& failure() const { return failure_; }
  /// When the first failure was recorded, also if another has replaced it; empty if there is none.
  std::optional<Clock::time_point> failed_at() const { return failure_ ? std::optional(first_) : std::nullopt; }
  std::vector<RankStatus> statuses(Clock::time_point now) const;
  /// Number of ranks that have joined, whatever their state is now.
  int joined() const { return joined_; }
  std::vector<int> missing() const;

 private:
  struct Entry {
    RankStatus status;
    Clock::time_point heard{}, position_time{};
    bool has_seen_failure = false, has_timed_out = false;
    Stall stall; // at `position_time`
  };

  Entry& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Entry& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool has(int rank) const { return rank >= 0 && rank < static_cast<int>(ranks_.size()); }
  std::optional<Failure> stuck_rank(Clock::time_point now) const;
  bool is_cause(const Failure& failure, Clock::time_point now) const;

  std::vector<Entry> ranks_;
  std::optional<Failure> failure_;
  Clock::time_point first_{}; // when the first failure was recorded
  int joined_ = 0;
  Clock::duration absence_{}; // the last time during which the server did not run
  Clock::time_point absence_ended_{};
};

} // namespace triax::control
