// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "train/loop.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/caught_error.hpp"
#include "base/printable.hpp"
#include "base/rank_files.hpp"
#include "checkpoint/folder.hpp"
#include "executor/executor.hpp"
#include "report/traffic.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

/// A request to all ranks, larger than any signal.
constexpr std::int32_t kOutOfTime = 1000;

std::string on_one_line(const std::string& text) {
  std::string out;
  for (std::size_t at = 0, end = 0; end != text.npos; at = end + 1) {
    end = text.find('\n', at);
    out += printable(std::string_view(text).substr(at, end - at)) + (end == text.npos ? "" : "\\n");
  }
  return out;
}

class Loop {
 public:
  Loop(const config::RunConfig& run, Rank& rank, const os::StopSignals& signals, const Reports& reports,
       Checkpoints* checkpoints, Turns* turns)
      : run_(run),
        rank_(rank),
        reports_(reports),
        checkpoints_(checkpoints),
        turns_(turns),
        signals_(signals),
        end_(run.train.stop_at > 0 ? std::min(run.train.stop_at, run.train.steps) : run.train.steps),
        tokens_(static_cast<double>(run.batch.global) * static_cast<double>(rank.sequence())) {}

  LoopResult go() {
    // This agreement means that all ranks have joined. No rank ends its first step, and writes a file of it, before
    // rank 0 has begun that step, because the norm sums over all ranks.
    stop_for(rank_.agree(requested()));
    const bool owes = owes_evaluation();
    if (is_next_step() || owes) begin_records(); // else the files stay as they are
    if (rank_.steps_done() > 0) continue_after(rank_.steps_done());
    if (owes) evaluate_continued_step();
    while (!stops() && has_turn() && is_next_step()) located(rank_.steps_done() + 1, [this] { step(); });
    finish();
    end_checkpoints();
    end_records();
    result_.last_step = rank_.steps_done();
    result_.tokens_per_s = seconds_ > 0 ? tokens_ * static_cast<double>(result_.steps) / seconds_ : 0;
    result_.traffic = rank_.traffic();
    return result_;
  }

 private:
  bool is_next_step() const { return rank_.steps_done() < end_ && !stops(); }

  bool is_evaluated(std::int64_t step) const {
    return run_.eval.every > 0 && (step % run_.eval.every == 0 || step == run_.train.steps);
  }

  /// Whether a stop has left out the evaluation of the step after which this run continues.
  bool owes_evaluation() {
    if (run_.eval.every == 0 || stops()) return false;
    const bool continues = reports_.records && checkpoints_ && checkpoints_->continues_run();
    const std::int64_t done = rank_.steps_done();
    const bool owes = continues && is_evaluated(done) && reports_.records->lacks_evaluation(done);
    return rank_.agree(owes ? 1 : 0) != 0;
  }

  void evaluate_continued_step() {
    report::StepRecord record;
    record.step = rank_.steps_done();
    located(record.step, [&] {
      try {
        evaluate(record);
      } catch (const executor::NonfiniteError& error) {
        add_evaluation(record); // the held-out loss is complete, if there is one
        end_for(error);
      } catch (...) {
        add_evaluation(record);
        throw;
      }
    });
    add_evaluation(record);
  }

  void add_evaluation(const report::StepRecord& record) {
    if (!record.eval_loss || !reports_.records) return;
    note(text("step {}, whose evaluation a stop had left out: held-out loss {}", record.step, *record.eval_loss));
    try {
      reports_.records->add_evaluation(record);
    } catch (...) { // does not end training
      note(text("the record of step {} will have no evaluation: {}", record.step, caught_error().what()));
    }
  }

  /// Also after the last step, so that the other side has its turn.
  bool has_turn() {
    if (!turns_ || turns_->await(rank_, rank_.device().abort_flag())) return true;
    checkpoints_ = nullptr; // nothing is saved
    return false;
  }

  void begin_records() {
    if (!reports_.records) return;
    const std::string moved =
        reports_.records->begin(checkpoints_ && checkpoints_->continues_run() ? rank_.steps_done() : 0, rank_.memory());
    if (!moved.empty()) note(moved);
  }

  void end_records() {
    result_.missing.timelines = rank_.missing_timelines();
    if (!reports_.records || result_.steps == 0) return;
    reports_.records->check();
    result_.metrics = reports_.records->metrics().string();
    result_.records = reports_.records->records();
    result_.missing.records = reports_.records->missing();
    result_.missing.events = reports_.records->missing_events();
  }

  std::int32_t requested() const {
    const int signal = signals_.caught();
    return signal == 0 && is_out_of_time() ? kOutOfTime : signal;
  }

  void stop_for(std::int32_t request) {
    result_.signal = request < kOutOfTime ? request : 0;
    result_.out_of_time = request >= kOutOfTime;
  }
  bool stops() const { return result_.signal != 0 || result_.out_of_time; }

  /// Whether the next step and a save might not end before train.time_limit.
  bool is_out_of_time() const {
    const double limit = run_.train.time_limit_s;
    if (limit <= 0) return false;
    constexpr double kUnknownShare = 0.05, kMaxUnknown = 300; // for the first save
    const double saved = checkpoints_ ? checkpoints_->last_seconds() : 0;
    const double save = saved > 0 ? 2 * saved : std::min(kUnknownShare * limit, kMaxUnknown);
    const double elapsed = std::chrono::duration<double>(Clock::now() - reports_.began).count();
    return elapsed + 2 * longest_step_s_ + save >= limit;
  }

  /// A stop before the first step leaves what was there.
  void end_checkpoints() {
    if (!checkpoints_) return;
    if (result_.steps > 0 && saved_ != rank_.steps_done()) checkpoints_->save();
    checkpoints_->wait();
    result_.checkpoint = checkpoints_->newest();
    result_.missing.checkpoints = checkpoints_->missing();
  }

  /// The device may still run the optimizer of the last step.
  void finish() {
    try {
      rank_.finish();
    } catch (...) {
      const Error error = caught_error();
      throw Error(error.message(), text("step {}, OPT_STEP", rank_.steps_done()), error.hint());
    }
  }

  /// Errors of `body` are located at `number`.
  template <class Body>
  static void located(std::int64_t number, Body body) {
    const std::string location = text("step {}", number);
    try {
      body();
    } catch (...) {
      const Error error = caught_error();
      if (error.where().starts_with(location)) throw; // the executor adds the action
      throw Error(error.message(), error.where().empty() ? location : text("{}, {}", location, error.where()),
                  error.hint());
    }
  }

  void step() {
    const std::vector<report::GroupTraffic> before = rank_.traffic();
    // Ranks wait for each other in every step, so all must stop together: all get the signal with the step's results.
    const StepResult done = next_step();
    stop_for(done.request);
    const std::vector<report::GroupTraffic> traffic = report::difference(rank_.traffic(), before);
    seconds_ += done.seconds;
    longest_step_s_ = std::max(longest_step_s_, done.seconds);
    count(done);
    if (done.nonfinite) {
      if (run_.train.nonfinite == "rewind" && !stops()) return rewind(done);
      note(text("{}: {}; the step is skipped", done.nonfinite->where(), done.nonfinite->message()));
    }
    const bool ends = stops() || done.step == end_; // the last step is always recorded
    const bool due = is_evaluated(done.step);
    report::StepRecord record = record_of(done);
    record.comm = traffic;
    const bool recorded = done.step % run_.log.every == 0 || due || ends;
    try {
      if (due && !stops()) evaluate(record);
      result_.owes_evaluation = due && !record.eval_loss;
    } catch (const executor::NonfiniteError& error) {
      write(record, recorded); // the step is complete
      end_for(error);
    } catch (...) {
      write(record, recorded);
      throw;
    }
    write(record, recorded);
    if (reports_.step) reports_.step(record);
    if (!checkpoints_ || !checkpoints_->is_due(done.step)) return;
    checkpoints_->save();
    saved_ = done.step;
  }

  StepResult next_step() {
    try {
      return rank_.step(request_);
    } catch (const executor::NonfiniteError& error) {
      end_for(error);
    }
  }

  [[noreturn]] void end_for(const executor::NonfiniteError& error) {
    if (!keeps_last_step()) throw error;
    const std::string saved = text("step {} is saved", rank_.steps_done());
    throw Error(error.message(), error.where(), error.hint().empty() ? saved : text("{}; {}", error.hint(), saved));
  }

  /// Before a run ends because values are not finite. These weights may lead to the same values again, so no older
  /// checkpoint is removed.
  bool keeps_last_step() {
    if (!checkpoints_) return false;
    try {
      if (result_.steps > 0 && saved_ != rank_.steps_done()) checkpoints_->save(Checkpoints::Old::kept);
      checkpoints_->wait();
      const std::string newest = fs::path(checkpoints_->newest()).filename().string();
      return rank_.agree(checkpoint::step_of(newest) == rank_.steps_done() ? 0 : 1) == 0; // a rank that throws ends all
    } catch (...) { // must not hide why the run ends
      return false;
    }
  }

  /// Before all ranks end: the save after the last rewind may still be written, and without it the next start would use
  /// the same samples again.
  void complete_save() {
    try {
      if (checkpoints_) checkpoints_->wait();
      rank_.agree(0); // rank 0 completes it
    } catch (...) {   // must not hide why the run ends
    }
  }

  void count(const StepResult& done) {
    ++result_.steps;
    result_.skipped += done.skipped ? 1 : 0;
    if (!std::isfinite(done.loss)) return;
    if (!has_loss_) result_.first_loss = done.loss;
    has_loss_ = true;
    result_.last_loss = done.loss;
  }

  /// The samples that led to a value that is not finite may be the reason.
  void rewind(const StepResult& done) {
    const Error& found = *done.nonfinite;
    if (rewinds_ == run_.train.max_rewinds) {
      complete_save();
      throw Error(text("{}; the run has gone back {} times (train.max_rewinds)", found.message(), rewinds_),
                  found.where(), found.hint());
    }
    const std::optional<Checkpoints::Rewound> to = checkpoints_ ? checkpoints_->rewind() : std::nullopt;
    if (!to)
      throw Error(found.message() + "; there is no checkpoint to go back to", found.where(),
                  text("save more often: checkpoint.every = {} is after this step", run_.checkpoint.every));
    note(text("{}: {}; goes back to step {} ({}) and leaves out the samples {} to {} (rewind {} of {})", found.where(),
              found.message(), to->step, to->folder, to->begin, to->end - 1, ++rewinds_, run_.train.max_rewinds));
    continue_after(to->step);
    if (reports_.records) continue_records(to->step);
    checkpoints_->save(); // a stop or a loss of a rank before the next save must not bring the samples back
    saved_ = to->step;
  }

  void continue_after(std::int64_t done) const {
    if (reports_.continuing) reports_.continuing(done);
  }

  void continue_records(std::int64_t done) {
    try {
      if (const std::string moved = reports_.records->rewind(done); !moved.empty()) note(moved);
    } catch (...) { // does not end training: the file then has these steps twice
      note(text("the file of metrics will have the steps after {} twice: {}", done, caught_error().what()));
    }
  }

  void note(const std::string& line) const {
    if (reports_.note) reports_.note(line);
  }

  void write(const report::StepRecord& record, bool recorded) {
    if (!reports_.records) return;
    reports_.records->check(); // logs a deleted file at once, even if records are rare
    if (recorded) reports_.records->write(record);
  }

  void evaluate(report::StepRecord& record) {
    if (reports_.evaluating) reports_.evaluating(record.step);
    const auto [held_out, request] = rank_.evaluate_unless(request_);
    stop_for(request);
    if (!held_out) return;
    record.eval_loss = result_.eval_loss = held_out->loss;
    if (std::isfinite(held_out->perplexity))
      record.eval_perplexity = held_out->perplexity; // e^710 is too large for a double
    if (!run_.eval.sample.empty() && !stops()) sample(record);
  }

  void sample(report::StepRecord& record) {
    const SampledText sampled = rank_.sample(request_);
    stop_for(sampled.request);
    if (stops() || !reports_.records) return;
    record.sample = sampled.text;
    note(text("sample after step {}: {}", record.step, on_one_line(run_.eval.sample + sampled.text)));
  }

  report::StepRecord record_of(const StepResult& done) {
    report::StepRecord record;
    record.step = done.step;
    record.loss = done.loss;
    record.grad_norm = done.grad_norm;
    record.lr = done.lr;
    record.tokens_per_s = tokens_ / done.seconds;
    record.step_ms = done.seconds * 1e3;
    record.model_tflops = rank_.flops_per_step() / done.seconds * 1e-12;
    record.bubble_rate = done.bubble_rate;
    record.loss_scale = done.loss_scale;
    record.skipped = done.skipped;
    return record;
  }

  const config::RunConfig& run_;
  Rank& rank_;
  const Reports& reports_;
  Checkpoints* checkpoints_;
  Turns* const turns_;
  const os::StopSignals& signals_;
  const executor::Request request_ = [this] { return requested(); };
  const std::int64_t end_;  // the step after which the run ends
  std::int64_t saved_ = -1; // the step of the last save
  std::int64_t rewinds_ = 0;
  bool has_loss_ = false; // that is finite
  double longest_step_s_ = 0;
  double tokens_; // per step
  double seconds_ = 0;
  LoopResult result_;
};

} // namespace

bool LoopResult::is_saved() const {
  return !checkpoint.empty() && checkpoint::step_of(fs::path(checkpoint).filename().string()) == last_step;
}

fs::path log_file(const config::RunConfig& run, int rank) {
  return run.folder / kRankLogs.of(rank);
}

LoopResult run_loop(const config::RunConfig& run, Rank& rank, const os::StopSignals& signals, const Reports& reports,
                    Checkpoints* checkpoints, Turns* turns) {
  return Loop(run, rank, signals, reports, checkpoints, turns).go();
}

} // namespace triax::train
