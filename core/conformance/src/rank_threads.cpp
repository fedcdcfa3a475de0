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

/// The ranks that run, and the first failure, which aborts the others.
class Team {
 public:
  /// Makes a rank known while it lives.
  class Member {
   public:
    Member(Team& team, Rank& rank) : team_(team), rank_(rank) {
      const std::lock_guard lock(team_.mutex_);
      team_.ranks_.push_back(&rank_);
      if (team_.failed_) rank_.abort(team_.why_);
    }
    ~Member() {
      const std::lock_guard lock(team_.mutex_);
      std::erase(team_.ranks_, &rank_);
    }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    Team& team_;
    Rank& rank_;
  };

  void fail(int index, const std::string& why, Report& report) {
    const std::lock_guard lock(mutex_);
    if (failed_) return; // a consequence
    failed_ = true;
    why_ = text("rank {} failed: {}", index, why);
    report.fail(text("rank {}: {}", index, why), index);
    for (Rank* const rank : ranks_) rank->abort(why_);
    store_.end_waits(why_);
  }
  LocalStore& store() { return store_; }

 private:
  LocalStore store_;
  std::mutex mutex_; // guards the members below
  std::vector<Rank*> ranks_;
  bool failed_ = false;
  std::string why_;
};

void run_thread(const RankSetup& setup, const Layout& layout, int index, Report& report, Team& team,
                const std::function<void(Rank&)>& body) {
  const RankActivity::Binding bound(report.activity(index));
  std::optional<Rank> rank; // destroyed after its failure is reported: others see that first
  std::optional<Team::Member> member;
  try {
    if (setup.began) setup.began(index);
    rank.emplace(index, layout, team.store(), setup, report);
    member.emplace(team, *rank);
    body(*rank);
  } catch (...) {
    team.fail(index, caught_error().what(), report);
  }
}

} // namespace

void run_rank_threads(const RankSetup& setup, const Layout& layout, Report& report,
                      const std::function<void(Rank&)>& body) {
  Team team;
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(layout.world_size()));
    for (int index = 0; index < layout.world_size(); ++index)
      threads.emplace_back([&, index] { run_thread(setup, layout, index, report, team, body); });
  }
  if (setup.ended) setup.ended(report);
}

} // namespace triax::conformance
