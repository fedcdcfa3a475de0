// SPDX-License-Identifier: Apache-2.0
#include "launch/start_tracker.hpp"

#include <utility>
#include <vector>

#include "control/rank_ranges.hpp"

namespace triax::launch {

namespace {

using std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr auto kWarnEvery = std::chrono::seconds(10);

} // namespace

StartTracker::StartTracker(const control::Server& server, int world, StartReports reports)
    : server_(server), world_(world), reports_(std::move(reports)) {}

void StartTracker::look() {
  const steady_clock::time_point now = steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  if (now >= next_warning_) warn(now);
  if (over_) return;
  report::StartState state;
  state.world = world_;
  state.joined = server_.joined();
  state.ready = static_cast<int>(server_.counter(kReady));
  if (state.ready >= world_) return finish();
  if (!reports_.state) return;
  state.missing = state.joined < world_ ? control::rank_ranges(server_.missing()) : not_ready();
  reports_.state(state);
}

std::string StartTracker::not_ready() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < world_; ++rank)
    if (server_.counter(ready_key(rank)) == 0) ranks.push_back(rank);
  return control::rank_ranges(ranks);
}

void StartTracker::finish() {
  if (std::exchange(over_, true) || !reports_.state) return;
  report::StartState state;
  state.over = true;
  reports_.state(state);
}

void StartTracker::warn(steady_clock::time_point now) {
  const control::Rejections rejections = server_.rejections();
  if (rejections.total == rejected_) return;
  rejected_ = rejections.total;
  next_warning_ = now + kWarnEvery;
  if (reports_.warning) reports_.warning("the job server " + control::to_text(rejections));
}

} // namespace triax::launch
