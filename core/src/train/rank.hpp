// SPDX-License-Identifier: Apache-2.0
// One rank of a training run, as an object: its plugins' objects, device, groups, stages, data and executor.
//
// Threads: made, used and destroyed on one thread, the rank's main thread; abort() may come from any. Many ranks may
// live in one process. Ownership: owns what it makes; run, layout, store, log and the sources of RankOptions must
// outlive it. Blocking: the constructor joins groups and allocates; step() and evaluate() compute. Errors: throws
// Error; a throw before the optimizer's part of step() leaves the weights of the step before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "control/abort_flag.hpp"
#include "executor/batch_source.hpp"
#include "executor/walk_observer.hpp"
#include "report/step_record.hpp"
#include "train/preflight.hpp"
#include "triax/communicator.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"
#include "triax/model.hpp"
#include "triax/scheduler.hpp"

namespace triax::train {

struct StepResult {
  std::int64_t step = 0; // from 1
  double loss = 0;       // mean over the global batch's tokens
  double grad_norm = 0;  // of all parameters together, before clipping; not finite in a step that was skipped
  double lr = 0;
  double seconds = 0;     // of the whole step
  double bubble_rate = 0; // part of the time from the first to the last F, B, I or W that this rank stood waiting
  std::optional<double> loss_scale = {}; // that the step was computed with, in fp16
  bool skipped = false;                  // no weight was changed, on any rank
};

struct EvalResult {
  double loss = 0; // mean over the tokens
  double perplexity = 0;
  std::int64_t tokens = 0;
};

/// A parameter as this rank holds it. Tied parameters are one and come once, under the first's name.
struct RankParameter {
  std::string name; // "block 3/attention.qkv.weight": the layer's name and the parameter's
  const ParamSpec* spec = nullptr;
  TensorView master;   // master dtype, spec->local
  TensorView gradient; // of the last step, summed over the global batch and both sides of a tie, before clipping; in
                       // fp16 it is multiplied by the step's loss scale
};

/// What a run's TOML does not say. Everything may be left as it is.
struct RankOptions {
  executor::BatchSource* training = nullptr; // in place of the dataset at data.path
  executor::BatchSource* held_out = nullptr; // in place of the dataset at data.validation
  const Schedule* schedule = nullptr;        // rows to run in place of the scheduler's
  executor::WalkObserver* observer = nullptr;
  int threads = 0; // CPU threads for this rank; 0: all cores this process may use
  /// Told of a failure while the rank is made, before its groups go; and heard from then on, so that another rank's
  /// failure ends this one's waits. Null: neither.
  control::AbortFlag* abort = nullptr;
  /// Told of a failure while the rank is made, in place of the flag, which it has to raise. May be empty.
  std::function<void(const Error& error)> failing = {};
  int local_rank = 0, local_ranks = 1; // among the ranks of this machine: which of its devices is this one's
};

class Rank {
 public:
  Rank(const config::RunConfig& run, const Layout& layout, int rank, Store& store, Log& log,
       const RankOptions& options = {});
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// One step of training. A loss or norm that is not finite throws Error, and no weight is written; in fp16 a norm
  /// that is not finite has the step skipped.
  StepResult step();
  /// Forward only, without dropout, over the same held-out samples at each call; changes nothing that step() reads.
  EvalResult evaluate();
  /// The same; before each batch but the first it asks whether to stop there: then there is no result.
  std::optional<EvalResult> evaluate_unless(const std::function<bool()>& stopped);

  /// In the order of the model. The views stay where they are for the rank's life.
  std::span<const RankParameter> parameters() const;
  /// Throws Error naming what is near.
  const RankParameter& parameter(std::string_view name) const;
  /// After writing into a master view: brings the working copies, where there are any, up to date.
  void weights_changed();

  /// Makes what the rank waits for, now or later, fail with `why`, here and in its groups. Any thread.
  void abort(std::string_view why) noexcept;

  /// The largest `value` that a rank gave: all ranks call it at the same places, and all get the same answer. Throws
  /// Error if they do not come before train.stall_timeout_s.
  std::int32_t agree(std::int32_t value);
  /// Where it is: "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx". Any thread.
  std::string place() const;

  std::int64_t steps_done() const;
  std::int64_t sequence() const; // tokens of a sample
  Device& device();
  /// Totals since the start, one entry per joined group.
  std::vector<report::GroupTraffic> traffic() const;
  /// What its arenas hold.
  std::vector<MemoryRow> memory() const;
  double flops_per_step() const;          // of the whole global batch, over all ranks
  std::int64_t missing_timelines() const; // files of log.timeline that could not be written

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::train
