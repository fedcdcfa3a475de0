// SPDX-License-Identifier: Apache-2.0
// The costs of the layers of a model on a cluster, by tensor ranks, microbatch and sequence parallelism. Layers of one
// kind are costed once: the blocks of a model are.
//
// Threads: the main thread. Ownership: borrows run, cluster and log. Errors: those of the model's layers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "config/run_config.hpp"
#include "cost/collective_cost.hpp"
#include "cost/layer_cost.hpp"
#include "train/plugins.hpp"
#include "triax/log.hpp"
#include "triax/recompute.hpp"

namespace triax::plan {

/// Bytes that a rank keeps of a layer for each microbatch in flight, from the forward to the end of the pass that last
/// reads them, with the inputs that the backward reads.
struct KeptBytes {
  double until_input = 0;  // the input gradient
  double until_weight = 0; // the weight gradient
  double all() const { return until_input + until_weight; }
};

/// One layer that recomputes nothing.
struct CostedLayer {
  cost::LayerTime time;
  KeptBytes kept;
  double input_bytes = 0; // of inputs that are not data
};

/// The part of a layer's cost that depends on memory.recompute.
struct LayerLoad {
  cost::PassTime repeated; // before the input gradient, with the all-gather of memory.partition_activations
  KeptBytes kept;
  /// With `full`: inputs of the first layer of a group, until the input gradient, unless they are on the host.
  double group_bytes = 0;
  Refusals refusals{}; // why the plugins do not support this value
};

/// The blocks of a stage that R repeats, the last group, if a stage of `blocks` blocks ends with one of them.
constexpr int blocks_of_last_group(int blocks, int group) noexcept {
  return blocks > 0 && group > 0 ? (blocks - 1) % group + 1 : 0;
}

class LayerTable {
 public:
  LayerTable(const config::RunConfig& run, const cost::Cluster& cluster, const cost::CodeTraits& code, Log& log);

  /// By kind; the reference stays valid.
  const std::vector<CostedLayer>& layers(int tensor, std::int64_t micro, bool sequence);
  /// How many blocks, at most, are recomputed together before the backward of the last of them: those of a group with
  /// `full`, one with `cheap`, none else. An automatic group, and one of a list by stage, counts as one block.
  int blocks_of_group(Recompute how) const;
  /// By kind, of blocks with this value; kinds without blocks recompute nothing. The reference stays valid. The time of
  /// `cheap` is that of CheapRecompute::recompute(), with the same costs as the passes. A load with refusals has none.
  /// `optimal` has the loads of `none`, because its steps depend on the schedule.
  const std::vector<LayerLoad>& loads(int tensor, std::int64_t micro, bool sequence, Recompute how);
  /// Why the run's kernel set does not support the calls of the layers; each reason once.
  Refusals refusals(int tensor, std::int64_t micro, bool sequence);
  /// Why the plugins do not support this value; each reason once.
  Refusals recompute_refusals(int tensor, std::int64_t micro, bool sequence, Recompute how);
  /// The kind of each layer of the model: see train::layer_kinds().
  const std::vector<int>& kinds() const { return kinds_; }
  /// Local elements of the parameter that a tie shares, by tie.
  const std::vector<double>& tied_elements(int tensor);
  /// The run's plugins, with this number of tensor ranks alone.
  const train::RankPlugins& plugins(int tensor) { return rank_of(tensor).plugins; }

 private:
  /// A rank's plugins, for one number of tensor ranks.
  struct TensorRank {
    TensorRank(const config::RunConfig& of, int tensor, Log& log);
    config::RunConfig run;
    Layout layout;
    train::RankPlugins plugins;
    std::vector<double> tied_elements;
  };
  TensorRank& rank_of(int tensor);
  std::unique_ptr<Layer> make_layer(const Model& model, int number, const LayerContext& context) const;
  /// With full recomputation. The blocks of a group share an all-gather.
  LayerLoad full_load(const CostedLayer& layer, int tensor, bool sequence);
  LayerLoad cheap_load(int block, int tensor, const LayerContext& context);
  static LayerContext context_of(const TensorRank& rank, std::int64_t micro, bool sequence);
  cost::SupportsCall supports_of(const TensorRank& rank) const;

  const config::RunConfig& run_;
  Log& log_;
  const cost::LayerCost costs_;
  const cost::CollectiveCost collectives_;
  const int devices_per_node_;
  std::map<int, std::unique_ptr<TensorRank>> ranks_; // by tensor ranks
  std::map<std::tuple<int, std::int64_t, bool>, std::vector<CostedLayer>> layers_;
  std::map<std::tuple<int, std::int64_t, bool, Recompute>, std::vector<LayerLoad>> loads_;
  std::vector<int> kinds_;
  std::vector<int> first_of_kind_;
  std::vector<std::optional<int>> block_of_kind_; // the first transformer block
};

} // namespace triax::plan
