// SPDX-License-Identifier: Apache-2.0
// The stages of a run that take about the same time: parallel.split = "auto", and the balanced plans of a search.
//
// Threads: the main thread. Errors: see the functions.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "cost/balanced_split.hpp"
#include "plan/layer_table.hpp"
#include "plan/search_request.hpp"
#include "triax/log.hpp"

namespace triax::plan {

/// The settings on which the times of stages depend.
struct SplitSettings {
  int tensor = 1, stages = 1;
  std::int64_t micro = 1;
  bool sequence = false;
  Recompute recompute = Recompute::none;
  std::vector<int> stage_rank = {};                       // pipeline rank of each stage; empty: each stage has its own
  auto operator<=>(const SplitSettings&) const = default; // NOLINT(modernize-use-nullptr): there is no pointer
};

/// The loads of a model's layers. Times are relative to the sum of all, so they are equal on all ranks. The
/// plugins must support the recomputation (LayerTable::recompute_refusals()). Errors: those of the model's layers.
cost::SplitProblem split_problem(LayerTable& table, const SplitSettings& settings);

/// Blocks of the balanced stages; even ones if a pipeline rank with several stages would take longer. Errors: as above.
Split automatic_split(const cost::SplitProblem& problem, const std::vector<int>& stage_rank);

/// The balanced stages of the plans of a search; each split is found once.
///
/// Ownership: borrows the table.
class BalancedSplits {
 public:
  struct Found {
    Split blocks;
    bool is_even = false; // the blocks of an even split
  };

  explicit BalancedSplits(LayerTable& table) : table_(table) {}

  /// Valid until set().
  const Found& find(const SplitSettings& settings);
  /// The split of these settings from now on.
  void set(const SplitSettings& settings, Split blocks) { found_[settings] = {std::move(blocks), false}; }

 private:
  LayerTable& table_;
  std::map<std::tuple<int, std::int64_t, bool, Recompute>, cost::SplitProblem> problems_; // of any number of stages
  std::map<SplitSettings, Found> found_;
};

/// Replaces parallel.split = "auto" by numbers of blocks, in the run and in the values; does nothing for another value.
/// The result depends on the run, its plugins and the cluster file only, so ranks need not exchange it. Plugins are
/// called in a child process; what they, or the cluster file, refuse is added to the result's refusals, and there is no
/// run then. Throws Error if no process can be started.
void resolve_split(config::LoadResult& loaded, Log& log);

} // namespace triax::plan
