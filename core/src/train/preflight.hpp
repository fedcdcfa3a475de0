// SPDX-License-Identifier: Apache-2.0
// All checks that need no training step: creates each plugin's object, calls every supports(), creates and verifies the
// programs, makes a dry run of every rank, and returns all errors together.
//
// Blocking: computes; no network; checks that devices exist. Errors: returned, also for exceptions of plugins and
// modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "executor/host_update.hpp"
#include "executor/memory.hpp"
#include "executor/rank_plan.hpp"
#include "report/step_record.hpp"
#include "train/balance.hpp"
#include "train/memory_row.hpp"
#include "train/rank_placement.hpp"
#include "train/stage_recomputation.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// Plan of the ranks that differ in samples and positions only. They hold the same, unless such an axis cuts a
/// parameter into unequal parts; the first of them is planned.
struct RankPlan {
  std::vector<int> ranks;
  int pipeline = 0, tensor = 0;
  std::vector<std::string> layers;                     // layers of each of these ranks
  std::vector<MemoryRow> memory;                       // of each of these ranks
  std::vector<executor::ActivationPart> activations{}; // parts of the row "activations", largest first
  /// Communication of a training step, by index in `ranks` and axis. Evaluations and the agreement before the
  /// first step are not counted.
  std::vector<std::vector<report::GroupTraffic>> traffic{};
  std::vector<executor::AxisPlan> communication{}; // of the first of `ranks`, from which `traffic` is made
  std::uint64_t offload_bytes = 0;                 // of the file of each of these ranks (memory.offload = "disk")
  executor::HostTraffic host_traffic{};            // of each in a step, if the host updates (memory.offload)
  std::uint64_t bytes() const; // of the device: the sum of the rows of `memory` that are not on the host
};

/// How much of a corpus the run uses.
struct CorpusPlan {
  std::filesystem::path path;
  bool validation = false;
  double share = 0; // fraction of the samples
  std::int64_t tokens = 0;
  double epochs = 0; // passes through the corpus, in training or in one evaluation
};

struct Preflight {
  Refusals refusals;           // reasons contain full keys ("parallel.tensor"); config::diagnose() adds positions
  std::vector<RankPlan> plans; // by pipeline, then tensor coordinate
  std::vector<CorpusPlan> corpora;
  std::int64_t parameters = 0;                     // of the whole model; tied parameters count once
  std::optional<DeviceKind> device;                // of the kernel set; empty: not installed here
  int threads = 1;                                 // CPU threads of the kernel set per rank
  Balance balance{};                               // of the stages
  std::vector<StageRecomputation> recomputation{}; // of the stages with memory.recompute = "optimal"
  bool shares_accumulators = false; // stages of some rank: optimizer.shard = "gradients" needs less than "states"
  bool saves_weights = false;       // on some rank, optimizer.shard = "parameters" needs less than "gradients"
  std::int64_t positions = 0;       // of the model, for a run that generates
  std::string resume;               // "continues after step 20 from ..."; empty: begins at step 1 with new weights
};

/// The ranks that are planned.
enum class PlannedRanks {
  all,
  /// For a search: the pipeline ranks of ranks_of_most_memory(), and of each the first tensor rank, and the last if its
  /// layers differ: where parts are unequal, these two have the largest and the smallest. Preflight::parameters is 0.
  of_most_memory,
  /// For traffic: the tensor ranks with the layers of the first one are in its RankPlan::ranks.
  all_that_differ,
};

/// `devices`: the ranks of this machine whose devices are checked; none if the run is only planned.
Preflight preflight(const config::RunConfig& run, const Placement& placement, Log& log,
                    const CheckedDevices& devices = {}, PlannedRanks planned = PlannedRanks::all);

struct Programs;
/// Plans tensor ranks of these pipeline ranks under given programs, which may have fewer microbatches than the run:
/// memory depends on their slots. Asks all plugins whether they accept the run. Does not check data, devices, schedule
/// and checkpoints.
Preflight plan_under(const config::RunConfig& run, const Placement& placement, Log& log, const Programs& programs,
                     std::span<const int> pipeline_ranks, PlannedRanks planned = PlannedRanks::of_most_memory);

} // namespace triax::train
