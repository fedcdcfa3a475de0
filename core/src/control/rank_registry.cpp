// SPDX-License-Identifier: Apache-2.0
#include "control/rank_registry.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "control/all_wait.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

/// If a rank stopped with an error, the loss of another rank within this time is the cause.
constexpr std::chrono::seconds kSameEvent{1};

/// Seconds. A rank without progress for as long can be the cause of a timeout of others, and the position of a rank
/// that has waited for as long is that of a call.
constexpr double kMinStall = 1;

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

std::string RankRegistry::refusal(const Hello& hello) const {
  if (hello.world != static_cast<int>(ranks_.size()))
    return text("this job has {} ranks, but rank {} was started as one of {}", ranks_.size(), hello.rank, hello.world);
  if (!has(hello.rank))
    return text("rank {} does not exist: this job has ranks 0 to {}", hello.rank, ranks_.size() - 1);
  const RankStatus& there = of(hello.rank).status;
  if (there.state == RankStatus::State::joined)
    return text("rank {} has already joined (host {}, pid {})", hello.rank, there.host, there.pid);
  if (there.state == RankStatus::State::left) return text("rank {} has left this job and cannot rejoin", hello.rank);
  if (there.state == RankStatus::State::lost) return text("rank {} was lost and cannot rejoin", hello.rank);
  return {};
}

void RankRegistry::add(const Hello& hello, Clock::time_point now) {
  Entry& entry = of(hello.rank);
  joined_ += entry.status.state == RankStatus::State::missing ? 1 : 0;
  entry = {};
  entry.status.state = RankStatus::State::joined;
  entry.status.pid = hello.pid;
  entry.status.host = hello.host;
  entry.heard = entry.position_time = now;
}

/// The abort of one rank ends the pending calls of its peers. So a rank that waited before the failure keeps the
/// position of its last heartbeat, which names the call.
void RankRegistry::set_position(int rank, std::string position, Clock::time_point now, const Stall& stall) {
  Entry& entry = of(rank);
  if (failure_ && entry.stall.waiting_s >= kMinStall) return;
  entry.status.position = std::move(position);
  entry.position_time = now;
  entry.stall = stall;
}

/// After a failure, the position is that at the failure. Otherwise its last heartbeat may be older than its end.
void RankRegistry::left(int rank) {
  RankStatus& status = of(rank).status;
  status.state = RankStatus::State::left;
  if (!failure_) status.position = "finished";
}

void RankRegistry::excuse(Clock::duration absence, Clock::time_point now) {
  absence_ = absence;
  absence_ended_ = now;
  for (Entry& entry : ranks_) {
    if (entry.status.state == RankStatus::State::joined) entry.heard += absence;
  }
}

Failure RankRegistry::cause_of(Failure reported, double since_server_s, double limit_s, Clock::time_point now) const {
  // Half: what a rank notices of its peers shortly before its own limit has the same cause.
  const bool is_long = since_server_s >= limit_s / 2 && seconds(absence_) >= limit_s / 2;
  if (!is_long || seconds(now - absence_ended_) > since_server_s) return reported;
  return {kNoRank, true,
          text("the job server did not run for {} s (its process was stopped, or its machine suspended), and the ranks "
               "stopped after train.stall_timeout_s = {} s without an answer",
               std::round(seconds(absence_) * 10) / 10, limit_s)};
}

bool RankRegistry::silent(int rank, double limit, Clock::time_point now) const {
  return seconds(now - of(rank).heard) > limit;
}

bool RankRegistry::note(const Failure& failure, Clock::time_point now) {
  const bool is_first = !failure_;
  if (is_first) first_ = now;
  const bool timed_out_waiting = is_first && !failure.lost && has(failure.rank) && of(failure.rank).has_timed_out;
  const std::optional<Failure> awaited = timed_out_waiting ? stuck_rank(now) : std::nullopt;
  if (is_cause(failure, now)) failure_ = awaited.value_or(failure);
  if (failure.lost && has(failure.rank)) {
    RankStatus& status = of(failure.rank).status;
    if (status.state == RankStatus::State::joined) {
      status.silent_s = seconds(now - of(failure.rank).heard);
      status.position_age_s = seconds(now - of(failure.rank).position_time);
    }
    if (status.state != RankStatus::State::left) status.state = RankStatus::State::lost;
  }
  return is_first;
}

/// The rank that has made no progress for the longest time. Ranks that wait for it poll, and that counts as progress.
std::optional<Failure> RankRegistry::stuck_rank(Clock::time_point now) const {
  const auto stalled_s = [now](const Entry& entry) {
    const bool is_joined = entry.status.state == RankStatus::State::joined;
    return is_joined && entry.stall.stalled_s > 0 ? entry.stall.stalled_s + seconds(now - entry.position_time) : 0;
  };
  const auto found = std::ranges::max_element(ranks_, {}, stalled_s);
  if (found == ranks_.end() || stalled_s(*found) < kMinStall) return std::nullopt;
  return Failure{static_cast<int>(found - ranks_.begin()), false,
                 text("no progress for {} s while other ranks wait for it: {}",
                      static_cast<std::int64_t>(stalled_s(*found)), found->status.position),
                 true};
}

std::optional<Failure> RankRegistry::all_wait(double limit_s) const {
  const auto waits = [limit_s](const Entry& entry) {
    return entry.status.state == RankStatus::State::left ||
           (entry.status.state == RankStatus::State::joined && entry.stall.waiting_s >= limit_s);
  };
  if (failure_ || !std::ranges::all_of(ranks_, waits)) return std::nullopt;
  const auto waiting_s = [](const Entry& entry) {
    return entry.status.state == RankStatus::State::joined ? entry.stall.waiting_s : 0;
  };
  const auto longest = std::ranges::max_element(ranks_, {}, waiting_s);
  if (waiting_s(*longest) <= 0) return std::nullopt; // all have left
  return Failure{static_cast<int>(longest - ranks_.begin()), false, all_wait_text(waiting_s(*longest)), true};
}

bool RankRegistry::is_cause(const Failure& failure, Clock::time_point now) const {
  if (!failure_) return true;
  // A rank that failed while the server did not run failed before the others stopped.
  if (failure_->rank == kNoRank && first_ >= absence_ended_ && !failure.lost && failure.rank != kNoRank) return true;
  const bool explains = failure.lost && !failure_->lost && failure.rank != failure_->rank;
  const bool had_seen = has(failure.rank) && of(failure.rank).has_seen_failure;
  return explains && !had_seen && now - first_ <= kSameEvent;
}

std::vector<RankStatus> RankRegistry::statuses(Clock::time_point now) const {
  std::vector<RankStatus> all;
  for (const Entry& entry : ranks_) {
    all.push_back(entry.status);
    if (entry.status.state == RankStatus::State::joined) all.back().silent_s = seconds(now - entry.heard);
  }
  return all;
}

std::vector<int> RankRegistry::missing() const {
  std::vector<int> out;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (of(rank).status.state == RankStatus::State::missing) out.push_back(rank);
  return out;
}

} // namespace triax::control
