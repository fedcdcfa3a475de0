#include "control/roster.hpp"

#include <chrono>
#include <utility>

#include "triax/text.hpp"

namespace triax::control {

namespace {

/// How long after a rank gave up the loss of another explains it.
constexpr std::chrono::seconds kSameEvent{1};

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

std::string Roster::refusal(const Hello& hello) const {
  if (hello.world != static_cast<int>(ranks_.size()))
    return text("this job has {} ranks, and rank {} was started as one of {}", ranks_.size(), hello.rank, hello.world);
  if (!has(hello.rank)) return text("there is no rank {}: this job's are 0 to {}", hello.rank, ranks_.size() - 1);
  const RankStatus& there = of(hello.rank).status;
  if (there.state == RankStatus::State::here)
    return text("rank {} is here already (host {}, pid {})", hello.rank, there.host, there.pid);
  if (there.state == RankStatus::State::lost) return text("rank {} was lost, and cannot come back", hello.rank);
  return {};
}

void Roster::came(const Hello& hello, Clock::time_point now) {
  Entry& entry = of(hello.rank);
  entry = {};
  entry.status.state = RankStatus::State::here;
  entry.status.pid = hello.pid;
  entry.status.host = hello.host;
  entry.heard = entry.placed = now;
}

void Roster::is_at(int rank, std::string place, Clock::time_point now) {
  of(rank).status.place = std::move(place);
  of(rank).placed = now;
}

void Roster::excuse(Clock::duration absence) {
  for (Entry& entry : ranks_) {
    if (entry.status.state == RankStatus::State::here) entry.heard += absence;
  }
}

bool Roster::silent(int rank, double limit, Clock::time_point now) const {
  return seconds(now - of(rank).heard) > limit;
}

bool Roster::note(const Failure& failure, Clock::time_point now) {
  const bool is_first = !failure_;
  if (is_first) first_ = now;
  if (is_cause(failure, now)) failure_ = failure;
  if (failure.lost && has(failure.rank)) {
    RankStatus& status = of(failure.rank).status;
    if (status.state == RankStatus::State::here) {
      status.silent_s = seconds(now - of(failure.rank).heard);
      status.place_age_s = seconds(now - of(failure.rank).placed);
    }
    if (status.state != RankStatus::State::left) status.state = RankStatus::State::lost;
  }
  return is_first;
}

bool Roster::is_cause(const Failure& failure, Clock::time_point now) const {
  if (!failure_) return true;
  const bool explains = failure.lost && !failure_->lost && failure.rank != failure_->rank;
  const bool knew = has(failure.rank) && of(failure.rank).knows;
  return explains && !knew && now - first_ <= kSameEvent;
}

std::vector<RankStatus> Roster::statuses(Clock::time_point now) const {
  std::vector<RankStatus> all;
  for (const Entry& entry : ranks_) {
    all.push_back(entry.status);
    if (entry.status.state == RankStatus::State::here) all.back().silent_s = seconds(now - entry.heard);
  }
  return all;
}

} // namespace triax::control
