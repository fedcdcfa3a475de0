// SPDX-License-Identifier: Apache-2.0
// One rank of a training run, as an object: its plugin objects, device, groups, stages, data and executor.
//
// Threads: constructed, used and destroyed on one thread, the rank's main thread; abort() and position(): any. One
// process may have many ranks. Ownership: owns what it creates; run, layout, store, log and the sources of RankOptions
// must outlive it. Blocking: the constructor joins groups and allocates; step() and evaluate() compute. Errors: Error.
// If step() throws before its optimizer action, the weights are those of the previous step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "config/run_config.hpp"
#include "control/abort_flag.hpp"
#include "executor/batch_source.hpp"
#include "executor/host_update.hpp"
#include "executor/kept_state.hpp"
#include "executor/request.hpp"
#include "executor/walk_observer.hpp"
#include "report/step_record.hpp"
#include "train/located_rank.hpp"
#include "train/preflight.hpp"
#include "triax/communicator.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"
#include "triax/model.hpp"
#include "triax/scheduler.hpp"

namespace triax::train {

struct StepResult {
  std::int64_t step = 0; // from 1
  double loss = 0;       // mean over the tokens of the global batch; may not be finite in a skipped step
  double grad_norm = 0;  // of all parameters together, before clipping; not finite in a skipped step
  double lr = 0;
  double seconds = 0;     // of the whole step
  double bubble_rate = 0; // waits of this rank between its first and last pass, over that time; 0 on GPUs
  std::optional<double> loss_scale = {}; // that the step was computed with, in fp16
  bool skipped = false;                  // no weight changed, on any rank
  std::int32_t request = 0;              // the largest of all ranks
  /// Why it was skipped, and where a value was not finite first; unless the loss scale was the reason.
  std::optional<Error> nonfinite = {};
};

struct SampledText {
  std::string text;         // without the prompt; of rank 0
  std::int32_t request = 0; // the largest of all ranks, which ended it; or 0
};

struct EvalResult {
  double loss = 0; // mean over the tokens
  double perplexity = 0;
  std::int64_t tokens = 0;
};

/// A parameter on this rank. Tied parameters are listed once, under the name of the first. In fp16, gradients are
/// multiplied by the loss scale of the step.
struct RankParameter {
  std::string name; // "block 3/attention.qkv.weight": the names of the layer and of the parameter
  const ParamSpec* spec = nullptr;
  /// In the master type; shape spec->local. If data ranks divide the master weights, the part of this rank, flat.
  /// Without data if it is offloaded: Rank::kept() reads it.
  TensorView master;
  TensorView gradient; // of the last step, before clipping; sum over the global batch and both sides of a tie
  TensorView working;  // what layers read; shape spec->local
  /// The elements of the parameter at which `master`, `gradient` and `working` begin; the last two are flat, too, if
  /// data ranks divide the gradients or the parameters.
  std::int64_t first = 0, gradient_first = 0, working_first = 0;
};

/// Settings that are not in the TOML file. All are optional.
struct RankOptions {
  executor::BatchSource* training = nullptr; // instead of the corpora of [data]
  executor::BatchSource* held_out = nullptr; // instead of the validation corpora
  const Schedule* schedule = nullptr;        // rows to run instead of the scheduler's
  executor::WalkObserver* observer = nullptr;
  int threads = 0; // CPU threads for this rank; 0: all cores that this process may use
  /// Set if the constructor fails, before the groups are destroyed. Also ends this rank's waits when another rank
  /// fails. May be null.
  control::JobAbort* abort = nullptr;
  /// Called if the constructor fails, instead of setting the flag; it must set the flag. May be empty.
  std::function<void(const Error& error)> failing = {};
  /// Called on the rank's thread when the objects of its plugins exist. May be empty.
  std::function<void()> plugins_created = {};
  /// A watchdog ends the waits of this rank once all ranks wait. Otherwise they time out after about
  /// train.stall_timeout_s, even if the other rank makes progress.
  bool waits_are_watched = false;
  bool records_timelines = false;      // record_timeline() will be called
  int local_rank = 0, local_ranks = 1; // among the ranks of this machine: determines the rank's device
};

class Rank final : public LocatedRank {
 public:
  Rank(const config::RunConfig& run, const Layout& layout, int rank, Store& store, Log& log,
       const RankOptions& options = {});
  ~Rank() override;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// One training step. If a loss or the norm is not finite, no weight changes: throws executor::NonfiniteError,
  /// or with another train.nonfinite than "stop" returns it. In fp16, a norm that is not finite skips the step. All
  /// ranks get the largest `request` of all ranks with the step's results. On a device that runs asynchronously, the
  /// optimizer's work of the step may not have finished: its failure appears in a later call, and StepResult::seconds
  /// has that of the step before.
  StepResult step(const executor::Request& request = {});
  /// Forward only, without dropout, over the same held-out samples in each call. Changes nothing that step() reads.
  EvalResult evaluate();
  struct Evaluated {
    std::optional<EvalResult> result; // empty: ended by a request before the last batch
    std::int32_t request = 0;         // the largest of all ranks
  };
  /// The same, but ends after the batch for which a rank's request is not 0.
  Evaluated evaluate_unless(const executor::Request& request);
  /// The text of eval.sample, which must not be empty; see TextSample::make().
  SampledText sample(const executor::Request& request);
  struct BatchLoss {
    double sum = 0;           // over the tokens
    std::int32_t request = 0; // the largest of all ranks
  };
  /// Part of an evaluation: the first `count` samples of the global batch of held-out samples that begins with `first`.
  BatchLoss evaluate_batch(std::int64_t first, std::int64_t count, const executor::Request& request);

  /// Waits for the last step to finish on the device. Throws Error if it failed there.
  void finish();
  /// In the order of the model. The views stay valid and unchanged while the rank exists. Waits for the last step to
  /// finish on the device.
  std::span<const RankParameter> parameters() const;
  /// Throws Error with the closest name.
  const RankParameter& parameter(std::string_view name) const;
  /// All that the rank keeps from step to step, and which part of it this rank saves. The views stay valid while the
  /// rank exists. Waits as parameters() does.
  std::vector<executor::KeptTensor> kept() const;
  /// The state of training after the last step, with what plugins save.
  checkpoint::TrainingState training_state() const;
  /// The first sample of the next step. Calls no plugin.
  std::int64_t next_sample() const;
  /// The content of the corpora that this rank has read.
  checkpoint::DataContent data_content() const;
  /// Reads the training corpora, which the first step does otherwise.
  void open_data();
  /// Gives plugins the states that they have saved (TrainingState::plugins).
  void load_plugins(const std::map<std::string, std::string>& states);
  /// Continues after the step of `state`, once the tensors of kept() have their values of then.
  void resume(const checkpoint::TrainingState& state);
  /// Call it after writing to a master view: updates the working weights, if they are separate.
  void weights_changed();

  /// Makes all current and later waits of the rank and its groups fail with `why`. Any thread.
  void abort(std::string_view why) noexcept;

  /// The largest `value` of all ranks. All ranks must call it at the same points; all get the same result. Waits for
  /// them as RankOptions::waits_are_watched says.
  std::int32_t agree(std::int32_t value);
  /// The position: "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx". Any thread.
  std::string position() const override;

  std::int64_t steps_done() const;
  std::int64_t sequence() const;     // tokens per sample
  std::int64_t global_batch() const; // samples per step
  Device& device();
  bool computes() const; // see KernelSet::computes()
  Stream& stream();      // of computations
  /// Totals since the start, one entry per group.
  std::vector<report::GroupTraffic> traffic() const;
  /// Contents of its arenas.
  std::vector<MemoryRow> memory() const;
  /// Bytes that optimizer steps have moved between the device and its host (memory.offload = "optimizer").
  executor::HostTraffic host_traffic() const;
  /// Writes the timeline of this later step to the run's folder, as log.timeline does. Needs
  /// RankOptions::records_timelines.
  void record_timeline(std::int64_t step);
  double flops_per_step() const;          // of the global batch, over all ranks
  std::int64_t missing_timelines() const; // files of log.timeline that could not be written

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::train
