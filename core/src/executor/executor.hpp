// SPDX-License-Identifier: Apache-2.0
// Runs a program on one rank: exactly the verified actions, in order.
//
// Threads: the rank's main thread. Ownership: borrows everything but its lists of views; parts must outlive it.
// Blocking: step() and evaluate() compute and wait; every wait runs the progress loop, and checks the rank's abort flag
// and the deadline. Errors: Error located at step and action. If a loss or gradient is not finite, no weight changes:
// NORM makes OPT_STEP skip the step on the device, and the host learns of it at the end of the step
// (StepOutcome::nonfinite).
//
// From the third step on, operator new is not called between the first and the last action, except by libraries.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/gradient_reductions.hpp"
#include "executor/input_offload.hpp"
#include "executor/position.hpp"
#include "executor/rank_state.hpp"
#include "executor/request.hpp"
#include "executor/transfer_streams.hpp"
#include "executor/walk_observer.hpp"
#include "triax/lazy_load_guard.hpp"
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
  schedule::Assumptions assumptions; // that the verification relies on
};

/// The first loss scale, and the rules by which it changes.
struct LossScale {
  float initial = 1;
  LossScaling rules;
};

struct ExecutorSettings {
  double weight_decay = 0;
  double clip_grad = 0; // 0: off
  double stall_timeout_s = 600;
  std::optional<LossScale> loss_scale = {}; // empty: 1, and it never changes
  bool record = false;                      // capture the third step, see Recorder
  std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
  std::int64_t warmup_steps = 0; // before the first delayed update, where the host updates with a delay
};

struct StepOutcome {
  double loss = 0;      // mean over the tokens of the global batch; may not be finite in a skipped step
  double grad_norm = 0; // before clipping; not finite in a skipped step
  /// Fraction of the time from the start of the first pass (F, B, I, W or R) to the end of the last in which the rank
  /// waited for posted transfers before its next action. 0 on devices that run asynchronously.
  double bubble_rate = 0;
  double loss_scale = 1, next_loss_scale = 1; // of this step, and of the next
  std::string skipped;                        // why no weight changed; empty: the step was not skipped
  /// Set if the step was skipped for another reason than the loss scale: what is not finite, located at NORM.
  std::optional<Error> nonfinite;
  enum class Ran : std::uint8_t { walked, recorded, launched };
  Ran ran = Ran::walked;    // recorded: captured, then launched
  std::int32_t request = 0; // the largest of all ranks
};

/// The error of a value that is not finite: a loss or gradient of a step, a held-out loss, or a logit of a text. All
/// ranks throw it at the same point, with the weights of the last complete step, and no rank waits for another: they
/// may still save that step.
class NonfiniteError : public Error {
 public:
  explicit NonfiniteError(const Error& error) : Error(error) {}
};

class Executor {
 public:
  Executor(const ExecutorParts& parts, const ExecutorSettings& settings);

  /// Limit of consecutive skipped steps without a loss scale, or at the smallest: smaller scales are not allowed.
  static constexpr int kMaxSkipped = 20;

  /// Continues after step `step`, which ended with these scalars; its samples and those before are [0, samples).
  void resume(std::int64_t step, std::int64_t samples, const StepScalars& scalars);
  /// Runs step `step` on B samples of `source`: of a run that was not resumed, (step-1)*B to step*B-1. Reads those of
  /// the next step while the device works, unless `step` is the last one. What `request` returns goes to all ranks. On
  /// a device that runs asynchronously, the optimizer's work may not have finished yet: see finish().
  StepOutcome step(std::int64_t step, double lr, const Request& request, BatchSource& source,
                   WalkObserver* observer = nullptr);
  struct Evaluated {
    double loss_sum = 0;
    std::int32_t request = 0;         // the largest of all ranks
    std::optional<Error> nonfinite{}; // a loss is not finite: the same on all ranks
  };
  /// The losses of the first `count` samples of one global batch, without dropout; `first` is the number of its first
  /// sample.
  Evaluated evaluate(std::int64_t first, std::int64_t count, const Request& request, BatchSource& source);
  /// Computes the gradient of step `step` again, which has just ended, and shows `search` what each layer writes. 0:
  /// the losses of the batch that evaluate() has just computed. Does not change weights or scalars.
  void repeat(std::int64_t step, NonfiniteSearch& search);
  /// The position of a step that has failed at its end: NORM, after which it would have changed the weights.
  void stay_at_norm(std::int64_t step);
  /// Waits for all work of the last step, and until offloaded state is in its storage. A pending update is then in the
  /// memory of the host, and stays pending: layers read the same weights as before.
  void finish();
  /// Destroys the captured step. A communicator whose calls it contains can end only after this. No step may follow.
  void release_recording() noexcept { recording_.reset(); }
  /// As the last step left them.
  const StepScalars& scalars() const { return parts_.state.values().decided(); }
  /// Number of the first sample of a step.
  std::int64_t first_sample(std::int64_t step) const {
    return skipped_samples_ + (step - 1) * parts_.state.batches().shape().global();
  }

  /// Any thread may read it.
  const Position& position() const { return position_; }

 private:
  struct Walk {
    const schedule::Program& program;
    std::int64_t step = 0; // 0: evaluation
    ActionId norm = kNoAction;
    Clock::time_point first_began{}, last_ended{}; // of the step's passes
    Clock::duration idle{};
    const Request& request;
    WalkObserver* observer = nullptr;
    BatchSource* next_batch = nullptr; // data of the next step, which is read while the device works
    std::optional<Event> values{};     // fires when the step's values are on the host
    NonfiniteSearch* search = nullptr; // the step is repeated
    bool must_zero = false;            // the gradients, before the first backward
    bool has_updated = false;          // with delayed updates: the work of the first OPT_STEP is done
  };
  void offload_inputs();
  DelayedUpdate* delayed() const;
  void use_delayed_updates();
  void walk(Walk& walk);
  void wait_for_device(const Walk& walk);
  StepOutcome::Ran train(Walk& walk);
  void record(Walk& walk);
  void walk_list(Walk& walk);
  void run(Walk& walk, ActionId id);
  std::string location(const Walk& walk, ActionId id, const std::string& inner) const;
  void post(const schedule::ProgramAction& action, ActionId id);
  Clock::duration wait_for_posted(const schedule::ProgramAction& next);
  void compute(const Walk& walk, ActionId id);
  void zero_gradients();
  void zero_accumulator(int slot);
  void reduce_gradients(int stage, ActionId id);
  void gather_weights(const schedule::ProgramAction& action, ActionId id);
  void find_norm(Walk& walk, ActionId id);
  void send_request(const Request& request);
  void step_optimizer(Walk& walk, int stage, ActionId id);
  void step_with_delay(Walk& walk, DelayedUpdate& updates);
  StepArgs step_args(const HostKernels* host, ActionId id) const;
  StepOutcome outcome(const Walk& walk, double lr);
  void count_skipped(const Walk& walk, const StepOutcome& outcome, double lr);
  std::string smaller_decay(double lr) const; // for a hint: empty, or "a smaller optimizer.weight_decay (...), "
  const LossScaling& rules() const;
  ValueContext value_context(ActionId id) const;
  Deadline deadline() const { return deadline_in(settings_.stall_timeout_s); }

  ExecutorParts parts_;
  ExecutorSettings settings_;
  double loss_gradient_;
  double loss_scale_;                // of the next step
  std::int64_t skipped_samples_ = 0; // used by the steps before a resume, beyond B for each of them
  int skipped_at_min_ = 0;           // consecutive steps
  std::map<int, std::vector<OptimizerCall>> optimizer_calls_; // by stage
  TransferStreams transfer_streams_;
  GradientReductions reductions_;
  std::unique_ptr<InputOffload> input_offload_; // null: no inputs are kept on the host
  Position position_;
  LazyLoadGuard* lazy_load_guard_ = nullptr; // set if the device has this interface
  bool evaluated_ = false;                   // the evaluation program has run once
  Recorder* recorder_ = nullptr;             // set if steps are captured
  std::unique_ptr<Recording> recording_;
  bool is_recording_ = false;
  int walked_ = 0; // training steps that were not launched from a graph
  ActionId recorded_norm_ = kNoAction;
};

} // namespace triax::executor
