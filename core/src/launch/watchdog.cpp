// SPDX-License-Identifier: Apache-2.0
#include "launch/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <utility>

#include "base/start_thread.hpp"
#include "control/all_wait.hpp"
#include "os/signal_name.hpp"
#include "report/units.hpp"
#include "triax/error.hpp"

namespace triax::launch {

namespace {

using Kind = RankActivity::Kind;

constexpr std::chrono::milliseconds kPeriod{100};

} // namespace

Watchdog::Watchdog(const WatchdogRequest& request) : request_(request) {
  thread_ = start_thread("the watchdog thread",
                         [this] { return std::jthread([this](const std::stop_token& stop) { run(stop); }); });
}

Watchdog::~Watchdog() {
  thread_.request_stop();
}

Watchdog::Watching::Watching(Watchdog& watchdog, ObservedRank& rank, std::function<void(const Error&)> report)
    : watchdog_(watchdog) {
  const std::lock_guard lock(watchdog_.mutex_);
  watched_ = watchdog_.watched_.insert(watchdog_.watched_.end(), {&rank, std::move(report), {}, {}});
}

Watchdog::Watching::~Watching() {
  std::thread reporting;
  {
    const std::lock_guard lock(watchdog_.mutex_);
    watched_->report = {};
    reporting = std::move(watched_->reporting);
  }
  if (reporting.joinable()) reporting.join(); // still watched: if the report hangs, the process is ended
  const std::lock_guard lock(watchdog_.mutex_);
  watchdog_.watched_.erase(watched_);
}

void Watchdog::expect_end() {
  const std::lock_guard lock(mutex_);
  end_expected_ = true;
}

void Watchdog::run(const std::stop_token& stop) {
  std::mutex own;
  std::condition_variable_any period;
  std::unique_lock lock(own);
  while (!period.wait_for(lock, stop, kPeriod, [&stop] { return stop.stop_requested(); })) {
    if (request_.each_period) request_.each_period();
    sample();
    if (request_.end_process && is_end_overdue()) request_.end_process();
  }
}

void Watchdog::sample() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  for (Watched& watched : watched_) {
    watched.rank->sample(now);
    const double stalled_s = watched.rank->stalled_s();
    if (!watched.report || stalled_s < limit_s(watched.rank->activity().kind())) continue;
    report(watched, error_of(*watched.rank));
  }
  if (request_.has_all_ranks && !end_expected_) look_for_deadlock();
}

void Watchdog::look_for_deadlock() {
  const double limit = request_.stall_timeout_s + control::kAllWaitMargin_s;
  const auto waiting_s = [](const Watched& watched) { return watched.rank->progress().waiting_s; };
  const auto waits = [&](const Watched& watched) { return waiting_s(watched) >= limit; };
  if (watched_.empty() || !std::ranges::all_of(watched_, waits)) return;
  Watched& longest = *std::ranges::max_element(watched_, {}, waiting_s);
  if (!longest.report) return;
  report(longest, Error(control::all_wait_text(waiting_s(longest)), {},
                        "a communicator has lost a message, or ranks have posted different calls"));
}

void Watchdog::report(Watched& watched, const Error& error) {
  try {
    watched.reporting = std::thread([report = watched.report, error] { report(error); });
  } catch (const std::system_error&) { // cannot create a thread: the next poll tries again
    return;
  }
  watched.rank->set_stuck();
  watched.reported_at_s = watched.rank->stalled_s();
  watched.report = {};
}

double Watchdog::limit_s(Kind kind) const {
  if (kind == Kind::wait) return request_.stall_timeout_s + kMaxLateness;
  if (request_.signals.caught() != 0) return std::min(request_.stall_timeout_s, request_.stall_after_signal_s);
  return request_.stall_timeout_s;
}

Error Watchdog::error_of(const ObservedRank& rank) const {
  const std::string call = rank.activity().to_text();
  const int signal = request_.signals.caught();
  const bool is_stopping = signal != 0 && rank.stalled_s() < request_.stall_timeout_s;
  return Error(
      text("no progress for {} s{}{}{}", report::decimals_text(rank.stalled_s(), 1),
           is_stopping ? text(", and {} asks to stop", signal_name(signal)) : "", call.empty() ? "" : ": ", call),
      {}, text("the call hangs, or takes longer than train.stall_timeout_s = {}", request_.stall_timeout_s));
}

bool Watchdog::is_end_overdue() {
  const std::lock_guard lock(mutex_);
  return end_expected_ && !watched_.empty() && std::ranges::all_of(watched_, [](const Watched& watched) {
           const double grace = watched.reported_at_s ? *watched.reported_at_s + kGraceOfStuck : kGrace;
           return watched.rank->stalled_s() >= grace;
         });
}

} // namespace triax::launch
