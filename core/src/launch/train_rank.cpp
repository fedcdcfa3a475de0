// SPDX-License-Identifier: Apache-2.0
#include "launch/train_rank.hpp"

#include <atomic>
#include <cstdlib>

#include "base/caught_error.hpp"
#include "train/checkpoints.hpp"
#include "train/evaluate.hpp"
#include "triax/rank_activity.hpp"

namespace triax::launch {

namespace {

/// "pipeline 0, data 1, tensor 0, step 118, 0F3"; without coordinates if there is only one rank.
std::string location(const Layout& layout, int number, const std::string& where) {
  if (layout.world_size() == 1) return where;
  const std::string rank = layout.describe(number);
  return where.empty() ? rank : rank + ", " + where;
}

/// Marks the calls of a store as waits for other ranks.
class MarkedStore final : public Store {
 public:
  explicit MarkedStore(Store& store) : store_(store) {}
  void set(std::string_view key, std::string_view value) override {
    const ActivityScope wait(ActivityScope::Kind::wait, "writing to the job's store");
    store_.set(key, value);
  }
  std::string get(std::string_view key, Deadline deadline) override {
    const WaitScope wait("waiting for a key of the job's store", deadline);
    return store_.get(key, deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    const ActivityScope wait(ActivityScope::Kind::wait, "writing to the job's store");
    return store_.add(key, amount);
  }

 private:
  Store& store_;
};

class OneTraining {
 public:
  explicit OneTraining(const RankTraining& of)
      : of_(of), store_(of.store), observed_(of.number), bound_(observed_.activity()) {}

  std::optional<train::LoopResult> train() {
    if (of_.observe) of_.observe(&observed_);
    const Watchdog::Watching watching(of_.watchdog, observed_, [this](const Error& stuck) { is_stuck(stuck); });
    std::optional<train::LoopResult> result = trained();
    if (of_.observe) of_.observe(nullptr);
    return result;
  }

 private:
  std::optional<train::LoopResult> trained() {
    // Destroyed after the failure is reported: other ranks must learn of it first.
    std::optional<train::GeneratingRank> generating;
    std::optional<train::Rank> rank;
    std::optional<train::Checkpoints> checkpoints;
    std::optional<train::LoopResult> result;
    try {
      result = of_.text ? generated(generating) : trained(rank, checkpoints);
    } catch (...) {
      const Error error = observed_.activity().with_failed_call(caught_error());
      if (rank && !of_.run.evaluates) await_record(rank->steps_done());
      failed(error);
    }
    observed_.set_rank(nullptr);
    const ActivityScope phase(ActivityScope::Kind::engine, "releasing the rank");
    checkpoints.reset();
    rank.reset();
    generating.reset();
    return result;
  }

  train::RankOptions options() {
    train::RankOptions out = of_.options;
    out.abort = &of_.abort;
    out.waits_are_watched = true;
    out.failing = [this](const Error& error) { failed_here(error); };
    return out;
  }

  void report_made() {
    if (!of_.made) return;
    const ActivityScope wait(ActivityScope::Kind::wait, "reporting to the job that the rank is ready");
    of_.made();
  }

  std::optional<train::LoopResult> generated(std::optional<train::GeneratingRank>& rank) {
    rank.emplace(of_.run, of_.layout, of_.number, store_, of_.log, options());
    observed_.set_rank(&*rank);
    rank->load(of_.run.checkpoint.from);
    report_made();
    if (of_.reports.generating) of_.reports.generating();
    train::LoopResult own;
    const bool is_first = of_.number == 0;
    own.signal = of_.text->scores ? train::score_sequences(*rank, *of_.text->scores, of_.signals, is_first)
                                  : train::generate_text(
                                        *rank, of_.text->options, [this] { return of_.signals.caught(); },
                                        is_first ? &of_.text->conversation : nullptr);
    own.traffic = rank->traffic();
    observed_.set_finished("finished the text");
    const ActivityScope wait(ActivityScope::Kind::wait, "waiting for the other ranks to end");
    return of_.finish(own);
  }

  std::optional<train::LoopResult> trained(std::optional<train::Rank>& rank,
                                           std::optional<train::Checkpoints>& checkpoints) {
    train::RankOptions options = this->options();
    std::optional<train::Turns> turns;
    if (const char* const name = std::getenv(train::kTurnsVariable)) turns.emplace(name, of_.run, of_.number);
    options.records_timelines = turns.has_value();
    rank.emplace(of_.run, of_.layout, of_.number, store_, of_.log, options);
    observed_.set_rank(&*rank);
    checkpoints.emplace(of_.run, of_.layout, of_.number, *rank, store_, of_.log);
    if (const std::string note = checkpoints->restore(); !note.empty() && of_.reports.note) of_.reports.note(note);
    report_made();
    const train::LoopResult own =
        of_.run.evaluates
            ? train::run_evaluation(of_.run, of_.number, *rank, of_.signals, of_.reports, *checkpoints)
            : train::run_loop(of_.run, *rank, of_.signals, of_.reports, &*checkpoints, turns ? &*turns : nullptr);
    observed_.set_finished(rank->steps_done());
    const ActivityScope wait(ActivityScope::Kind::wait, "waiting for the other ranks to end");
    return of_.finish(own);
  }

  void await_record(std::int64_t steps) {
    if (!of_.await_record || of_.number == 0 || steps == 0 || of_.abort.raised()) return;
    const ActivityScope wait(ActivityScope::Kind::wait, "waiting until rank 0 has recorded the last step");
    of_.await_record(steps);
  }

  /// On the rank's thread, which knows the call that it left.
  void failed_here(const Error& error) { failed(observed_.activity().with_failed_call(error)); }
  void is_stuck(const Error& error) { failed(Error(error.message(), observed_.position(), error.hint())); }

  /// Acts only once: a rank that fails in its constructor reports before its groups are destroyed.
  void failed(const Error& error) {
    if (reported_.exchange(true)) return;
    of_.watchdog.expect_end();
    const control::RankProgress progress = observed_.progress();
    if (of_.failed) of_.failed({of_.number, false, error.what(), progress.is_stuck});
    const Error located(error.message(), location(of_.layout, of_.number, error.where()), error.hint());
    const bool first = !of_.is_first_failure || of_.is_first_failure();
    if (of_.abort.raise(of_.number, error.what()) && first) {
      of_.log.error("{}", located.what());
    } else {
      of_.log.debug("stopped: {}", located.what());
    }
  }

  const RankTraining& of_;
  MarkedStore store_;
  ObservedRank observed_;
  const RankActivity::Binding bound_;
  std::atomic<bool> reported_{false};
};

} // namespace

std::optional<train::LoopResult> train_rank(const RankTraining& training) {
  return OneTraining(training).train();
}

} // namespace triax::launch
