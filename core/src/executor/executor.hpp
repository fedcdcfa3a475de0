// SPDX-License-Identifier: Apache-2.0
// Walks a program on one rank: what runs is what was proved, in that order and nothing else.
//
// Threads: the rank's main thread. Ownership: borrows everything but its lists of views; parts must outlive it.
// Blocking: step() and evaluate() compute and wait; every wait pumps progress, reads the rank's interrupt and keeps the
// deadline. Errors: Error whose place is step and action; up to and with a loss or gradient that is not finite, no
// weight has been written: NORM has OPT_STEP skip it on the device, and the host reads of it when the walk is over.
// From the third step on, no call of operator new between the first and the last action, but for what libraries do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/lanes.hpp"
#include "executor/position.hpp"
#include "executor/rank_state.hpp"
#include "executor/walk_observer.hpp"
#include "triax/first_use.hpp"
#include "triax/recording.hpp"

namespace triax::executor {

struct ExecutorParts {
  Device& device;
  Stream& stream;
  KernelSet& kernels;
  Optimizer& optimizer;
  const Groups& groups;
  RankState& state;
  const schedule::Program& training;
  const schedule::Program& evaluation;
  schedule::Assumptions assumptions; // with which the programs were proved
};

/// What the loss gradient is multiplied by at first, and how that follows the gradients.
struct LossScale {
  float initial = 1;
  LossScaling rules;
};

struct ExecutorSettings {
  double weight_decay = 0;
  double clip_grad = 0; // 0: off
  double stall_timeout_s = 600;
  /// None: it is 1, and a gradient that is not finite is an error in place of a step that is skipped.
  std::optional<LossScale> loss_scale = {};
  bool record = false; // the third step on, see Recorder
};

struct StepOutcome {
  double loss = 0;      // mean over the global batch's tokens
  double grad_norm = 0; // before clipping; not finite in a step that was skipped
  /// Part of the time from the start of the first to the end of the last F, B, I or W in which the rank could not begin
  /// its next action, because what it had posted (transfers of other ranks' results) was not there yet.
  double bubble_rate = 0;
  double loss_scale = 1, next_loss_scale = 1; // of this step, and from the next one on
  std::string skipped;                        // why no weight was changed; empty: the step was taken
  enum class Ran : std::uint8_t { walked, recorded, launched };
  Ran ran = Ran::walked; // recorded: walked for the recording, then launched
};

class Executor {
 public:
  Executor(const ExecutorParts& parts, const ExecutorSettings& settings);

  /// Steps in a row, at the smallest loss scale, that may be skipped: a smaller one would not help them.
  static constexpr int kMostSkipped = 20;

  /// Step number `step`, from 1, on the samples (step-1)*B to step*B-1 of `source`.
  StepOutcome step(std::int64_t step, double lr, BatchSource& source, WalkObserver* observer = nullptr);
  /// Losses of one global batch added up, without dropout; `first` is the number of its first sample.
  double evaluate(std::int64_t first, BatchSource& source);

  /// Any thread may read it.
  const Position& position() const { return position_; }

 private:
  struct Walk {
    const schedule::Program& program;
    std::int64_t step = 0; // 0: evaluation
    ActionId norm = kNoAction;
    Clock::time_point first_began, last_ended; // of F, B, I, W
    Clock::duration idle{};
    WalkObserver* observer = nullptr;
  };
  void walk(Walk& walk);
  StepOutcome::Ran train(Walk& walk);
  void record(Walk& walk);
  void walk_list(Walk& walk);
  void run(Walk& walk, ActionId id);
  std::string place(const Walk& walk, ActionId id, const std::string& inner) const;
  void post(const schedule::ProgramAction& action, ActionId id);
  Clock::duration wait_for_posted(const schedule::ProgramAction& next);
  void compute(const Walk& walk, ActionId id);
  void zero_gradients();
  void reduce_gradients(int stage, ActionId id);
  void all_reduce(const TensorView& view, std::string_view axis, Stream& stream, ActionId id);
  void list_tied();
  void reduce_tied(ActionId id);
  void find_norm(Walk& walk, ActionId id);
  void step_optimizer();
  StepOutcome outcome(const Walk& walk, double lr);
  void count_skipped(const Walk& walk, const StepOutcome& outcome, double lr);
  std::string smaller_decay(double lr) const; // for a hint: empty, or "a smaller optimizer.weight_decay (...), "
  const LossScaling& rules() const;
  ValueContext value_context(ActionId id) const;
  Deadline deadline() const { return deadline_in(settings_.stall_timeout_s); }

  ExecutorParts parts_;
  ExecutorSettings settings_;
  double loss_gradient_;
  double loss_scale_;      // of the next step
  int skipped_at_min_ = 0; // steps in a row
  std::vector<ParameterShard> shards_;
  Lanes lanes_;
  Position position_;
  FirstUse* first_use_ = nullptr; // where the device is to be told
  bool evaluated_ = false;        // the evaluation has been walked
  Recorder* recorder_ = nullptr;  // where steps are recorded
  std::unique_ptr<Recording> recording_;
  int walked_ = 0; // training steps
  ActionId recorded_norm_ = kNoAction;
  std::vector<Transfer> tied_; // accumulators of tied parameters, to and from other pipeline ranks
};

} // namespace triax::executor
