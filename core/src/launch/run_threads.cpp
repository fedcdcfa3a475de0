// SPDX-License-Identifier: Apache-2.0
#include "launch/run_threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "control/rank_ranges.hpp"
#include "launch/failure_report.hpp"
#include "launch/train_rank.hpp"
#include "os/exit_guard.hpp"
#include "os/fault_guard.hpp"
#include "os/library_of.hpp"
#include "report/traffic.hpp"
#include "report/units.hpp"
#include "train/plugins.hpp"
#include "train/wait_for_ranks.hpp"

namespace triax::launch {

namespace {

using control::RankStatus;

constexpr std::chrono::milliseconds kEvery{100};     // how often a start is looked at
constexpr std::chrono::milliseconds kStopGrace{500}; // for ranks to end after a signal during the start

// Next steps after the end of the process by one of its threads.
constexpr const char* kDefectOfPlugin = "this is a defect of the plugin: report it to its author";
constexpr const char* kDefect = "this is a defect of Triax or of a plugin: report it with the run's TOML";
constexpr const char* kSentSignal = "find what sends this signal: a batch system, a debugger or another user's program";

class LocalRanks {
 public:
  explicit LocalRanks(const LocalTraining& training)
      : training_(training),
        layout_(train::layout_of(training.run)),
        store_(training.store ? *training.store : own_store_),
        results_(static_cast<std::size_t>(layout_.world_size())),
        observed_(results_.size()),
        statuses_(results_.size()),
        watchdog_({.stall_timeout_s = training.run.train.stall_timeout_s,
                   .signals = training.signals,
                   .each_period = [this] { look_for_fault(); },
                   .end_process = [this] { end_process(); },
                   .has_all_ranks = true}) {}

  std::optional<train::LoopResult> train() {
    for (int rank = 0; rank < layout_.world_size(); ++rank) not_ready_.insert(rank);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < layout_.world_size(); ++rank) {
      try {
        threads.emplace_back([this, rank] { run(rank); });
      } catch (const std::system_error& error) {
        const Error why(text("cannot start the thread of rank {}: {}", rank, error.what()), {},
                        "use fewer ranks, or allow this process more threads (ulimit -u)");
        watchdog_.expect_end();
        if (abort_.raise(rank, why.what())) log(rank).error("{}", why.what());
        break;
      }
    }
    report_start(static_cast<int>(threads.size()));
    wait_for_end(static_cast<int>(threads.size()));
    for (std::thread& thread : threads) thread.join();
    if (!abort_.raised()) return together();
    if (stopped_at_start_) return stopped();
    if (failure_ && failure_->stuck) report(*failure_);
    if (training_.failed && failure_) training_.failed(failure_->rank, failure_->why, kFailedStatus);
    if (training_.failed && !failure_) training_.failed(abort_.rank(), abort_.reason(), kFailedStatus);
    return std::nullopt;
  }

 private:
  void run(int number) noexcept {
    const os::FaultStack stack;
    train::RankOptions options = training_.options ? training_.options(number) : train::RankOptions{};
    options.threads = training_.placement.threads_per_rank();
    options.local_rank = number;
    options.local_ranks = layout_.world_size();
    options.plugins_created = [this] { fault_guard_.install(); };
    const RankTraining rank{training_.run,
                            layout_,
                            number,
                            store_,
                            abort_,
                            log(number),
                            training_.signals,
                            number == 0 ? reports() : train::Reports{},
                            options,
                            [this](const train::LoopResult& own) { return finish(own); },
                            watchdog_,
                            [this, number](const ObservedRank* observed) { observe(number, observed); },
                            [this, number] { set_ready(number); },
                            [this](const control::Failure& failure) { note(failure); },
                            {},
                            [this](std::int64_t steps) { await_record(steps); },
                            training_.text};
    if (const auto result = train_rank(rank)) results_[static_cast<std::size_t>(number)] = *result;
    count_end();
  }

  train::Reports reports() {
    train::Reports out = training_.reports;
    out.step = [this](const report::StepRecord& record) {
      last_step_ = record.step;
      has_step_ = true;
      if (training_.reports.step) training_.reports.step(record);
    };
    out.evaluating = [this](std::int64_t step) {
      last_step_ = step;
      has_step_ = true;
    };
    out.continuing = [this](std::int64_t step) { last_step_ = step; };
    out.generating = [this] { has_step_ = true; };
    return out;
  }

  void await_record(std::int64_t steps) const {
    const auto end = Clock::now() + kRecordGrace;
    while (last_step_ < steps && !abort_.raised() && Clock::now() < end) std::this_thread::sleep_for(kRecordPoll);
  }

  void observe(int number, const ObservedRank* rank) {
    const std::lock_guard lock(mutex_);
    observed_[static_cast<std::size_t>(number)] = rank;
    if (!failure_) status_of(number).state = rank ? RankStatus::State::joined : RankStatus::State::left;
  }

  /// Records the first failure, and the positions of all ranks at that moment.
  void note(const control::Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (failure_ || stopped_at_start_) return;
    failure_ = failure;
    const bool is_rank = failure.rank != control::kNoRank;
    const ObservedRank* const failed = is_rank ? observed_[static_cast<std::size_t>(failure.rank)] : nullptr;
    timed_out_waiting_ = failed && failed->progress().has_timed_out;
    failed_at_ = Clock::now();
    for (std::size_t rank = 0; rank < observed_.size(); ++rank)
      if (observed_[rank]) statuses_[rank].position = observed_[rank]->position_and_call();
  }

  /// Called on the watchdog's thread: ranks that do not end can be neither joined nor stopped.
  [[noreturn]] void end_process() {
    if (stopped_at_start_) std::_Exit(128 + training_.signals.caught());
    const ObservedRank* longest = nullptr;
    const std::lock_guard lock(mutex_);
    for (const ObservedRank* rank : observed_)
      if (rank && (!longest || rank->stalled_s() > longest->stalled_s())) longest = rank;
    if (longest && failure_ && !failure_->stuck) {
      const std::string position = longest->position_and_call();
      log(longest->number())
          .error(
              "rank {} did not stop within {} s of the failure of rank {}; terminating the process\n  its position: {}",
              longest->number(), Watchdog::kGrace, failure_->rank, position);
      if (timed_out_waiting_)
        failure_ = {longest->number(), false, "no progress while other ranks wait for it: " + position, true};
    }
    report_end(kFailedStatus);
    std::_Exit(kFailedStatus);
  }

  /// A plugin called exit(), in the thread of a rank or in another one.
  [[noreturn]] void end_at_exit() {
    const FaultLocation at = location_of(RankActivity::current(), nullptr);
    note_end(at, at.rank == control::kNoRank ? "was ended by exit()" : "the process was ended by exit()",
             kDefectOfPlugin);
    const std::lock_guard lock(mutex_);
    report_end(kFailedStatus);
    std::_Exit(kFailedStatus);
  }

  /// Called on the watchdog's thread: the thread that crashed waits in its signal handler.
  void look_for_fault() {
    const std::optional<os::Fault> fault = fault_guard_.take();
    if (!fault) return;
    const FaultLocation at = location_of(fault->activity, fault->code);
    note_end(at, os::to_text(*fault), fault->sender != 0 ? kSentSignal : at.hint);
    const std::lock_guard lock(mutex_);
    report_end(128 + fault->signal);
    fault_guard_.reported();
  }

  /// The place of a fault in a thread of this process.
  struct FaultLocation {
    int rank = control::kNoRank; // whose main thread it is
    std::string where;
    const char* hint = kDefectOfPlugin;
  };
  /// `activity`: of the thread, if it is the main thread of a rank. `code`: what it runs; null: not known.
  FaultLocation location_of(const RankActivity* activity, const void* code) {
    const std::lock_guard lock(mutex_);
    for (const ObservedRank* rank : observed_) {
      if (!rank || &rank->activity() != activity) continue;
      const std::string call = rank->activity().to_text();
      const bool is_plugin = rank->activity().kind() == RankActivity::Kind::plugin_call;
      return {rank->number(), call.empty() ? rank->position() : text("{}, {}", rank->position(), call),
              is_plugin ? kDefectOfPlugin : kDefect};
    }
    return {.where = text("in a thread that is not a rank's{}", in_file_of(code)),
            .hint = plugin_at(code).empty() ? kDefect : kDefectOfPlugin};
  }

  /// Records why a thread ends this process, as the first failure unless a rank has failed before.
  void note_end(const FaultLocation& at, const std::string& why, const char* hint) {
    const std::string reason = text("{}: {}", why, at.where);
    const bool is_rank = at.rank != control::kNoRank;
    log(is_rank ? at.rank : 0).error("{}{}\n  {}", is_rank ? "" : "the process ", reason, hint);
    note({at.rank, false, reason});
    const std::lock_guard lock(mutex_);
    if (is_rank && failure_ && failure_->why == reason) status_of(at.rank).position = at.where;
  }

  // Called with the mutex held.
  void report_end(int status) {
    if (failure_) report(*failure_, true);
    if (failure_ && training_.failed) training_.failed(failure_->rank, failure_->why, status);
  }

  void report(const control::Failure& failure, bool is_ended = false) {
    const double seconds = std::chrono::duration<double>(Clock::now() - failed_at_).count();
    FailureFacts facts{layout_, failure, statuses_, last_step_, seconds};
    facts.is_ended = is_ended;
    facts.evaluates = training_.run.evaluates;
    facts.generates = training_.text && !training_.text->scores;
    facts.server = kThisProcess;
    if (training_.folder) facts.file = training_.folder->failure_file();
    log(0).error("{}", to_text(facts));
    if (training_.folder) write_failure(facts, log(0));
  }

  RankStatus& status_of(int number) { return statuses_[static_cast<std::size_t>(number)]; }

  void set_ready(int number) {
    const std::lock_guard lock(starting_);
    not_ready_.erase(number);
    changed_.notify_one();
  }

  void count_end() {
    const std::lock_guard lock(starting_);
    ++ended_;
    changed_.notify_one();
  }

  /// Until all ranks are ready, or one has ended.
  void report_start(int started) {
    report::StartState state;
    state.joined = state.world = layout_.world_size();
    std::unique_lock lock(starting_);
    const auto is_over = [&] { return static_cast<int>(not_ready_.size()) == state.world - started || ended_ > 0; };
    while (!changed_.wait_for(lock, kEvery, is_over)) {
      state.ready = state.world - static_cast<int>(not_ready_.size());
      state.missing = control::rank_ranges({not_ready_.begin(), not_ready_.end()});
      lock.unlock();
      stop_at_start();
      end_if_late();
      if (training_.starting) training_.starting(state);
      lock.lock();
    }
    lock.unlock();
    state.over = true;
    if (training_.starting) training_.starting(state);
  }

  void wait_for_end(int started) {
    std::unique_lock lock(starting_);
    while (!changed_.wait_for(lock, kEvery, [&] { return ended_ == started; })) {
      lock.unlock();
      stop_at_start();
      end_if_late();
      lock.lock();
    }
  }

  /// On a signal before the first step has ended: there is no step to stop after, and the first may take long.
  void stop_at_start() {
    if (training_.signals.caught() == 0 || has_step_ || abort_.raised()) return;
    if (!signalled_at_) signalled_at_ = Clock::now();
    if (Clock::now() - *signalled_at_ < kFirstStepGrace) return;
    stopped_at_start_ = true;
    watchdog_.expect_end();
    stopped_at_ = Clock::now();
    if (!abort_.relay(control::kNoRank, "stopped before the first step ended")) stopped_at_start_ = false;
  }

  /// A rank may be in a call that takes long and cannot be interrupted, such as the creation of its weights: it ends
  /// with the process, like ranks that are processes.
  void end_if_late() {
    if (!stopped_at_start_ || !training_.ends_at_start || Clock::now() - stopped_at_ < kStopGrace) return;
    report::StartState state;
    state.over = true;
    if (training_.starting) training_.starting(state);
    std::_Exit(training_.ends_at_start(stopped()));
  }

  train::LoopResult stopped() const {
    train::LoopResult out;
    out.signal = training_.signals.caught();
    return out;
  }

  train::LoopResult finish(const train::LoopResult& own) {
    const std::string key = "launch/end";
    if (store_.add(key, 1) == layout_.world_size()) store_.set(key, "");
    train::wait_for_ranks([&] { store_.get(key, train::no_deadline()); });
    return own;
  }

  train::LoopResult together() const {
    train::LoopResult out = results_.front();
    out.traffic.clear();
    out.missing = {};
    for (const train::LoopResult& result : results_) {
      report::add_traffic(out.traffic, result.traffic);
      out.missing.add(result.missing);
    }
    return out;
  }

  Log& log(int number) const { return *training_.logs[static_cast<std::size_t>(number)]; }

  const LocalTraining& training_;
  const Layout layout_;
  control::JobAbort abort_;
  control::LocalStore own_store_;
  control::LocalStore& store_;
  const control::JobAbort::Listening store_listens_{abort_, store_};
  std::vector<train::LoopResult> results_; // by rank
  std::mutex starting_;                    // protects the members below
  std::condition_variable changed_;
  std::set<int> not_ready_;                // ranks that are not ready for their first step
  int ended_ = 0;                          // number of ranks that have ended
  std::atomic<std::int64_t> last_step_{0}; // also of earlier starts
  std::atomic<bool> has_step_{false};      // of this start
  std::atomic<bool> stopped_at_start_{false};
  std::optional<Clock::time_point> signalled_at_; // of the caller's thread, like the next
  Clock::time_point stopped_at_;
  std::mutex mutex_;                          // protects the members below
  std::vector<const ObservedRank*> observed_; // by rank; null: not in training
  std::vector<RankStatus> statuses_;          // by rank, at the time of the failure
  std::optional<control::Failure> failure_;
  bool timed_out_waiting_ = false; // the failed rank timed out waiting for others
  Clock::time_point failed_at_;
  os::FaultGuard fault_guard_; // before the watchdog, whose thread uses it
  Watchdog watchdog_;
  const os::ExitGuard exit_guard_{[this] { end_at_exit(); }}; // destroyed first
};

} // namespace

std::optional<train::LoopResult> run_threads(const LocalTraining& training) {
  return LocalRanks(training).train();
}

} // namespace triax::launch
