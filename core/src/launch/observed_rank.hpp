// SPDX-License-Identifier: Apache-2.0
// A rank in training, or that generates, as other threads of its process see it: its position, its progress, and
// whether it is stuck.
//
// Threads: set_rank() and activity(): the rank's main thread; sample(): the watchdog; the others: any. Ownership:
// borrows the layout and the rank. Blocking: set_rank() waits while another thread reads the position.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "control/client.hpp"
#include "launch/stall_clock.hpp"
#include "train/located_rank.hpp"
#include "triax/rank_activity.hpp"
#include "triax/text.hpp"

namespace triax::launch {

class ObservedRank {
 public:
  explicit ObservedRank(int number) : number_(number) {}
  ObservedRank(const ObservedRank&) = delete;
  ObservedRank& operator=(const ObservedRank&) = delete;

  int number() const noexcept { return number_; }
  RankActivity& activity() noexcept { return activity_; }
  const RankActivity& activity() const noexcept { return activity_; }
  /// Call with the rank after construction, and with null before its destruction; position() then keeps the last value.
  void set_rank(const train::LocatedRank* rank);
  /// The rank has trained, and waits for the others. No later position replaces this one.
  void set_finished(std::int64_t steps) { set_finished(text("finished after step {}", steps)); }
  void set_finished(const std::string& position);

  void sample(Clock::time_point now);
  /// Time without progress, also in a wait.
  double stalled_s() const noexcept { return stalled_s_.load(); }
  /// Time without progress in one polling wait for other ranks.
  double waiting_s() const noexcept { return waiting_s_.load(); }
  void set_stuck() noexcept { is_stuck_.store(true); }

  /// "step 118, 0F3"; "starting" until the rank is made.
  std::string position() const;
  /// The position, and the current call if it takes long: "step 118, 0F3, in gemm() of plugin "x" for 2.1 s".
  std::string position_and_call() const;
  control::RankProgress progress() const;

 private:
  const int number_;
  RankActivity activity_;
  StallClock clock_, wait_clock_; // used by the watchdog
  std::atomic<double> stalled_s_{0}, waiting_s_{0};
  std::atomic<bool> is_stuck_{false};
  mutable std::mutex mutex_; // protects the members below
  const train::LocatedRank* rank_ = nullptr;
  std::string last_position_ = "starting";
};

} // namespace triax::launch
