// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of this process.
#include "rank_threads.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/caught_error.hpp"
#include "triax/local_store.hpp"

namespace triax::conformance {

namespace {

/// The ranks that are running. The first failure aborts the other ranks.
class RunningRanks {
 public:
  /// Registers a rank for as long as this object exists.
  class Registration {
   public:
    Registration(RunningRanks& running, Rank& rank) : running_(running), rank_(rank) {
      const std::lock_guard lock(running_.mutex_);
      running_.ranks_.push_back(&rank_);
      if (running_.failed_) rank_.abort(running_.reason_);
    }
    ~Registration() {
      const std::lock_guard lock(running_.mutex_);
      std::erase(running_.ranks_, &rank_);
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    RunningRanks& running_;
    Rank& rank_;
  };

  void fail(int index, const std::string& reason, Report& report) {
    const std::lock_guard lock(mutex_);
    if (failed_) return; // a later failure is a consequence of the first
    failed_ = true;
    reason_ = text("rank {} failed: {}", index, reason);
    report.fail(text("rank {}: {}", index, reason), index);
    for (Rank* const rank : ranks_) rank->abort(reason_);
    store_.end_waits(reason_);
  }
  LocalStore& store() { return store_; }

 private:
  LocalStore store_;
  std::mutex mutex_; // guards the members below
  std::vector<Rank*> ranks_;
  bool failed_ = false;
  std::string reason_;
};

void run_thread(const RankSetup& setup, const Layout& layout, int index, Report& report, RunningRanks& running,
                const std::function<void(Rank&)>& body) {
  const RankActivity::Binding bound(report.activity(index));
  // Destroyed after its failure is reported, so that the other ranks see the failure before the rank leaves.
  std::optional<Rank> rank;
  std::optional<RunningRanks::Registration> registration;
  try {
    if (setup.on_rank_start) setup.on_rank_start(index);
    rank.emplace(index, layout, running.store(), setup, report);
    registration.emplace(running, *rank);
    body(*rank);
  } catch (...) {
    running.fail(index, caught_error().what(), report);
  }
}

} // namespace

void run_rank_threads(const RankSetup& setup, const Layout& layout, Report& report,
                      const std::function<void(Rank&)>& body) {
  RunningRanks running;
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(layout.world_size()));
    for (int index = 0; index < layout.world_size(); ++index)
      threads.emplace_back([&, index] { run_thread(setup, layout, index, report, running, body); });
  }
  if (setup.on_all_ended) setup.on_all_ended(report);
}

} // namespace triax::conformance
