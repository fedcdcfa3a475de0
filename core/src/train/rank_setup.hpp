// SPDX-License-Identifier: Apache-2.0
// The parts of a rank that exist before its memory: programs, and the memory request of its state. Preflight and Rank
// share this code, so that what is checked is what runs.
//
// Threads: the rank's main thread. Ownership: owns the state; run, layout, plugins and programs must outlive it.
// Blocking: computes. Errors: Error with the violations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "executor/generate_state.hpp"
#include "executor/rank_state.hpp"
#include "schedule/assumptions.hpp"
#include "schedule/lower.hpp"
#include "schedule/program.hpp"
#include "train/plugins.hpp"

namespace triax::train {

/// The context in which a rank's layers are created. `layout` must outlive it.
LayerContext layer_context(const config::RunConfig& run, const Model& model, const Layout& layout, int rank);

/// Whether the kept inputs of recomputed blocks are on the host (memory.offload_activations), with a kernel set that
/// computes on this device. The memory of the host device is that of the host.
bool hosts_inputs(const config::RunConfig& run, DeviceKind device);

/// Consecutive blocks of a stage with Recompute::full that keep one input. `training`: of the stage's rank.
int recompute_group(const config::RunConfig& run, const Model& model, const LayerContext& context,
                    const schedule::Program& training, int stage, DeviceKind device);

/// Empty without loss scaling.
std::optional<executor::LossScale> loss_scale_of(const config::RunConfig& run);

/// `timeout_s`: of waits.
executor::ExecutorSettings executor_settings(const config::RunConfig& run, double timeout_s);

/// Errors in the split and in the rows of the scheduler. For violations of the rows, reports the first and the number
/// of others.
Refusals check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule);

/// `given`, or the rows of the scheduler if it is null. Throws Error if check_schedule() has errors.
Schedule schedule_of(const config::RunConfig& run, const RankPlugins& plugins, const Schedule* given);

/// The choice for a block with memory.recompute = "optimal".
struct ChosenBlock {
  executor::ChosenSteps steps;
  std::vector<std::string> names{};       // of the steps
  double recomputed_s = 0, forward_s = 0; // by the cost model: the steps, and the whole forward
};

/// The programs of all pipeline ranks, verified for the run's communicators.
struct Programs {
  std::vector<schedule::Program> training, evaluation;
  schedule::Assumptions assumptions; // guarantees that the verification relies on
  /// By stage and block; empty for stages without memory.recompute = "optimal". choose_steps() sets it.
  std::vector<std::vector<ChosenBlock>> chosen{};
};
/// Not verified; the schedule must have passed check_schedule(). `chosen`: as Programs::chosen; it decides which stages
/// with "optimal" have R. R precedes the backwards of a stage that recomputes something of its last layer.
Programs lower_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                        const Schedule& schedule, std::vector<std::vector<ChosenBlock>> chosen = {});
/// For a search, which needs the programs of few ranks.
/// @{
struct StepRows {
  StepRows(const Schedule& schedule, const PipelineShape& shape)
      : training(schedule, shape, false), evaluation(schedule, shape, true) {}
  schedule::TimedRows training, evaluation;
};
/// Programs without actions, of all pipeline ranks.
Programs empty_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins);
/// Sets the programs of one pipeline rank: those of lower_programs() if no stage recomputes.
void lower_rank(const config::RunConfig& run, const StepRows& rows, int rank, Programs& programs);
/// The pools of each rank's programs in what lower_programs() returns, in less time.
struct ProgramSlots {
  std::vector<schedule::RankSlots> training, evaluation;
};
ProgramSlots count_slots(const config::RunConfig& run, const StepRows& rows);
/// @}
/// The same as lower_programs(), verified. Throws Error with the first violation and the number of others.
Programs make_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                       const Schedule& schedule, std::vector<std::vector<ChosenBlock>> chosen = {});

/// The request for the state of a rank that generates (run.generate), with its communicators' guarantees. `layout` and
/// `model` must outlive it.
executor::GenerateRequest generate_request(const config::RunConfig& run, const Layout& layout, int rank,
                                           const RankPlugins& plugins);

/// The request for the state of a training rank for the texts of eval.sample: of one sequence of at most `positions`
/// tokens. `trained` must outlive what is made from it, too.
executor::GenerateRequest sample_request(const config::RunConfig& run, const Layout& layout, int rank,
                                         const RankPlugins& plugins, const executor::TrainedStages& trained,
                                         std::int64_t positions);

/// The model, for the states of the pipeline ranks that have the other coordinates of `rank`.
std::shared_ptr<const executor::ModelDescription> describe_model(const config::RunConfig& run, const Layout& layout,
                                                                 int rank, const RankPlugins& plugins,
                                                                 const Programs& programs);

/// The state of a rank, without memory. `described`: see RankRequest. Where Programs::chosen is empty, blocks with
/// "optimal" keep everything.
std::unique_ptr<executor::RankState> make_rank_state(const config::RunConfig& run, const Layout& layout, int rank,
                                                     const RankPlugins& plugins, const Programs& programs,
                                                     std::size_t pipeline,
                                                     std::shared_ptr<const executor::ModelDescription> described = {});

/// The plan; throws Error with the kernel set if it does not support an operation of it.
executor::Plan supported_plan(const config::RunConfig& run, executor::Plan plan);

struct Preparation {
  Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
              const Programs& programs, std::shared_ptr<const executor::ModelDescription> described = {});

  const schedule::Program& training; // the same as `evaluation` if the run does not train
  const schedule::Program& evaluation;
  std::unique_ptr<executor::RankState> state;
  executor::TrainedStages trained() const;
  /// The dry run of the state.
  executor::Plan plan(const Layout& layout, int rank, const RankPlugins& plugins, const Programs& programs) const;

 private:
  std::vector<executor::StageLayers> split_;
};

} // namespace triax::train
