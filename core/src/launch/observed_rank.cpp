// SPDX-License-Identifier: Apache-2.0
#include "launch/observed_rank.hpp"

#include "report/units.hpp"

namespace triax::launch {

namespace {

constexpr double kLongCall = 1; // seconds; longer calls are reported

} // namespace

void ObservedRank::set_rank(const train::LocatedRank* rank) {
  const std::lock_guard lock(mutex_);
  if (!rank && rank_) last_position_ = rank_->position();
  rank_ = rank;
}

void ObservedRank::set_finished(const std::string& position) {
  const std::lock_guard lock(mutex_);
  rank_ = nullptr;
  last_position_ = position;
}

void ObservedRank::sample(Clock::time_point now) {
  clock_.sample(activity_.progress(), now);
  stalled_s_.store(clock_.stalled_s());
  const std::uint64_t wait = activity_.polled_wait();
  wait_clock_.sample(wait, now);
  waiting_s_.store(wait % 2 == 1 ? wait_clock_.stalled_s() : 0);
}

std::string ObservedRank::position() const {
  const std::lock_guard lock(mutex_);
  return rank_ ? rank_->position() : last_position_;
}

std::string ObservedRank::position_and_call() const {
  std::string out = position();
  const double stalled = stalled_s();
  if (stalled < kLongCall) return out;
  const std::string call = activity_.to_text();
  return call.empty() ? out : out + text(", {} for {} s", call, report::decimals_text(stalled, 1));
}

control::RankProgress ObservedRank::progress() const {
  const bool waits = activity_.kind() == RankActivity::Kind::wait;
  const double stalled = waits ? 0 : stalled_s();
  const double waiting = stalled < kLongCall ? waiting_s() : 0; // else it is in a call of the progress loop
  return {stalled, is_stuck_.load(), waiting, activity_.has_timed_out()};
}

} // namespace triax::launch
