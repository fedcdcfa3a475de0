// SPDX-License-Identifier: Apache-2.0
// The costs of the layers of a model on a cluster, by tensor ranks, microbatch and sequence parallelism. Layers of one
// kind are costed once: the blocks of a model are.
//
// Threads: the main thread. Ownership: borrows run, cluster and log. Errors: those of the model's layers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "config/run_config.hpp"
#include "cost/collective_cost.hpp"
#include "cost/layer_cost.hpp"
#include "train/plugins.hpp"
#include "triax/log.hpp"

namespace triax::plan {

/// One layer, and what a rank keeps of it for each microbatch in flight.
struct CostedLayer {
  cost::LayerTime time;
  /// From the forward to the end of the pass that last reads them, with the inputs that the backward reads.
  /// @{
  double until_input_bytes = 0;  // the input gradient
  double until_weight_bytes = 0; // the weight gradient
  /// @}
  double input_bytes = 0; // of inputs that are not data
};

/// The bytes that a recomputed layer keeps of its inputs for each microbatch in flight, and the time in which the
/// tensor ranks gather it (memory.partition_activations).
struct KeptInput {
  double bytes = 0, gather_s = 0;
};

class LayerTable {
 public:
  LayerTable(const config::RunConfig& run, const cost::Cluster& cluster, const cost::CodeTraits& code, Log& log);

  /// By kind; the reference stays valid.
  const std::vector<CostedLayer>& layers(int tensor, std::int64_t micro, bool sequence);
  /// Why the run's kernel set does not support the calls of the layers; each reason once.
  Refusals refusals(int tensor, std::int64_t micro, bool sequence);
  /// The kept input of one of layers(tensor, ..., sequence). The blocks of a group share an all-gather; an automatic
  /// group, and one of a list by stage, count as one block.
  KeptInput kept_input(const CostedLayer& layer, int tensor, bool sequence) const;
  /// The kind of each layer of the model: see train::layer_kinds().
  const std::vector<int>& kinds() const { return kinds_; }
  /// Local elements of the parameter that a tie shares, by tie.
  const std::vector<double>& tied_elements(int tensor);
  /// The run's plugins, with this number of tensor ranks alone.
  const train::RankPlugins& plugins(int tensor) { return rank_of(tensor).plugins; }

 private:
  /// The plugins of a rank with so many tensor ranks.
  struct TensorRank {
    TensorRank(const config::RunConfig& of, int tensor, Log& log);
    config::RunConfig run;
    Layout layout;
    train::RankPlugins plugins;
    std::vector<double> tied_elements;
  };
  TensorRank& rank_of(int tensor);

  const config::RunConfig& run_;
  Log& log_;
  const cost::LayerCost costs_;
  const cost::CollectiveCost collectives_;
  const int devices_per_node_;
  std::map<int, std::unique_ptr<TensorRank>> ranks_; // by tensor ranks
  std::map<std::tuple<int, std::int64_t, bool>, std::vector<CostedLayer>> layers_;
  std::vector<int> kinds_;
  std::vector<int> first_of_kind_;
};

} // namespace triax::plan
