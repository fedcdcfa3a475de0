// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_rank.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <string>

#include "bench/call_times.hpp"
#include "bench/rank_agreement.hpp"
#include "bench/timeout_flag.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

constexpr std::int64_t kWarmupCalls = 3;
constexpr double kMaxCalls = 100'000;

/// The result of the slowest rank.
SizeResult slowest(const std::vector<std::string>& lines) {
  SizeResult out = read_size_result(lines.front());
  for (const std::string& line : lines) {
    const SizeResult other = read_size_result(line);
    for (std::size_t side = 0; side < out.sides.size(); ++side) {
      SideTimes& to = out.sides[side];
      const SideTimes& from = other.sides.at(side);
      for (std::size_t turn = 0; turn < to.turns_s.size(); ++turn)
        to.turns_s[turn] = std::max(to.turns_s[turn], from.turns_s.at(turn));
      to.min_s = std::max(to.min_s, from.min_s);
      to.p50_s = std::max(to.p50_s, from.p50_s);
      to.p99_s = std::max(to.p99_s, from.p99_s);
    }
  }
  return out;
}

class MeasuredRank final : public control::JobAbort::Listener {
 public:
  explicit MeasuredRank(const RankJob& job)
      : job_(job), agreement_(job.store, job.abort, job.seat.rank, job.plan.ranks, job.plan.timeout_s, [this] {
          return progress();
        }) {
    for (const Side& side : job.plan.sides) sides_.emplace_back(job.plan, side, job.seat);
    times_.resize(sides_.size());
  }

  void run() {
    const control::JobAbort::Listening listening(job_.abort, *this);
    for (std::size_t side = 0; side < sides_.size(); ++side)
      sides_[side].join(side == 0 ? "a" : "b", job_.store, deadline_in(job_.plan.timeout_s));
    agreement_.barrier(); // a member that leaves early would disturb one that still joins
    for (const std::int64_t bytes : job_.plan.sizes) measure(bytes);
    agreement_.barrier();
  }

  void abort(std::string_view why) noexcept override {
    for (CommSide& side : sides_) side.abort(why);
  }

 private:
  bool progress() {
    bool any = false;
    for (CommSide& side : sides_) any |= side.progress();
    return any;
  }
  /// The deadline of the calls of a turn.
  Deadline deadline() const { return deadline_in(job_.plan.timeout_s + 2 * job_.plan.turn_s); }

  void measure(std::int64_t bytes) {
    SizeResult own{bytes, std::vector<SideTimes>(sides_.size())};
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      sides_[side].set_size(bytes);
      check_call(sides_[side]);
      own.sides[side].calls = calls_of_turn(sides_[side], times_[side]);
      own.sides[side].turns_s.reserve(static_cast<std::size_t>(2 * job_.plan.rounds));
      times_[side].clear();
    }
    for (std::int64_t round = 0; round < job_.plan.rounds; ++round)
      for (const std::size_t side : turns_of_round(sides_.size(), round))
        own.sides[side].turns_s.push_back(turn(sides_[side], own.sides[side].calls, times_[side]));
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      sides_[side].check_output();
      check_call(sides_[side]); // the output would still be right if the last calls wrote nothing
      summarize(times_[side], own.sides[side]);
    }
    const std::vector<std::string> all = agreement_.gather(to_line(own));
    if (!all.empty() && job_.report) job_.report(slowest(all));
  }

  /// The ranks finish the calls of the other side: a peer may still need this rank's progress of it.
  void begin_turn() {
    if (sides_.size() > 1) agreement_.barrier();
  }

  void check_call(CommSide& side) {
    begin_turn();
    side.clear_output();
    side.barrier(deadline());
    side.wait(side.post(), deadline());
    side.check_output();
  }

  /// The number of calls that fill a turn, from the slowest rank's times of a few calls, and then of a whole turn.
  std::int64_t calls_of_turn(CommSide& side, CallTimes& times) {
    turn(side, kWarmupCalls, times);
    std::int64_t calls = kWarmupCalls;
    for (int repeat = 0; repeat < 2; ++repeat) {
      times.clear();
      turn(side, calls, times);
      times.sort(); // the median, because the ranks may not run for a moment
      const double call_s = agreement_.largest(times.quantile(0.5)) * static_cast<double>(side.messages());
      calls =
          static_cast<std::int64_t>(std::clamp(std::ceil(job_.plan.turn_s / std::max(call_s, 1e-9)), 1.0, kMaxCalls));
    }
    return calls;
  }

  /// Mean seconds of a call on this rank, or of a message of a send. On a GPU, calls are queued one after another, and
  /// the host waits for the last.
  double turn(CommSide& side, std::int64_t calls, CallTimes& times) {
    begin_turn();
    const Deadline until = deadline();
    side.barrier(until);
    if (!side.is_on_host()) return queued(side, calls, times, until);
    if (side.calls_in_flight() > 1) return overlapped(side, calls, times, until);
    return time_calls(calls, times, [&] { side.wait(side.post(), until); });
  }

  static double queued(CommSide& side, std::int64_t calls, CallTimes& times, Deadline until) {
    const Clock::time_point begin = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) side.post();
    side.finish(until);
    return mean_of_turn(side, calls, times, begin);
  }

  /// While the messages of one call move, those of the next are posted.
  static double overlapped(CommSide& side, std::int64_t calls, CallTimes& times, Deadline until) {
    std::array<Work, 2> in_flight;
    const Clock::time_point begin = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) {
      Work& work = in_flight[static_cast<std::size_t>(i) % in_flight.size()];
      side.wait(work, until);
      work = side.post();
    }
    for (const Work& work : in_flight) side.wait(work, until);
    return mean_of_turn(side, calls, times, begin);
  }

  /// The mean time of a message. The calls are not timed separately.
  static double mean_of_turn(const CommSide& side, std::int64_t calls, CallTimes& times, Clock::time_point begin) {
    const double mean = seconds_between(begin, Clock::now()) / static_cast<double>(calls * side.messages());
    times.add(static_cast<float>(mean));
    return mean;
  }

  static void summarize(CallTimes& times, SideTimes& to) {
    times.sort();
    to.min_s = times.quantile(0);
    to.p50_s = times.quantile(0.5);
    to.p99_s = times.quantile(0.99);
  }

  const RankJob& job_;
  std::deque<CommSide> sides_;
  std::vector<CallTimes> times_;
  RankAgreement agreement_;
};

} // namespace

void measure_rank(const RankJob& job) {
  const auto fail = [&job](std::string_view message) {
    const std::string why = with_timeout_flag(std::string(message));
    if (job.failed && !job.abort.raised()) job.failed(why);
    job.abort.raise(job.seat.rank, why);
  };
  std::optional<MeasuredRank> rank; // destroyed after its failure is reported
  try {
    rank.emplace(job).run();
    if (job.finish) job.finish();
  } catch (const std::exception& error) {
    fail(error.what());
  } catch (...) {
    fail("an unknown exception (not derived from std::exception)");
  }
}

} // namespace triax::bench
