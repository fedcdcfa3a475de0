// SPDX-License-Identifier: Apache-2.0
// Assigns layers to stages.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "triax/error.hpp"
#include "triax/model.hpp"
#include "triax/recompute.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::executor {

struct StageLayers {
  int first = 0, count = 0;
};

/// Splits the blocks by `split`, or evenly, with larger stages first. Layers before the blocks go to the first stage,
/// layers after them to the last. `split` must have passed check_split().
std::vector<StageLayers> split_layers(const Model& model, int stages, std::span<const std::int64_t> split);

/// Bytes of the largest boundary between two stages, for one microbatch.
std::size_t largest_boundary(const Model& model, const LayerContext& context, std::span<const StageLayers> split);

/// Checks that every boundary tensor is divisible by the number of tensor ranks.
Refusals check_scatter(const Model& model, const LayerContext& context, std::span<const StageLayers> split);

/// Checks that every stage gets a layer and that the split has all blocks.
Refusals check_split(const Model& model, int stages, std::span<const std::int64_t> split);

/// Numbers of layers in the model.
struct LayerRange {
  int begin = 0, end = 0;
  bool has(int number) const { return number >= begin && number < end; }
};

/// The choice for a block with `optimal`: ascending numbers of the steps that it runs again, and of the tensors of its
/// stash that it does not keep.
struct ChosenSteps {
  std::vector<int> steps, dropped;
  bool operator==(const ChosenSteps&) const = default;
};

/// How the blocks of a stage are recomputed.
struct StageRecompute {
  Recompute blocks = Recompute::none;
  int group = 1; // with `full`: consecutive blocks that keep one input
  /// Tensor ranks among which the kept inputs are divided, and the number of this one.
  int parts = 1, part = 0;
  std::vector<ChosenSteps> chosen{}; // with `optimal`: of each block of the stage
  bool on_host = false;              // the kept inputs are in host memory, which is not that of the device
};

/// The range of blocks; empty without recomputation.
LayerRange recomputed_layers(const Model& model, bool recompute);

/// Whether a backward reads this tensor of a stash from its forward.
bool outlives_forward(Life life);

/// Why a layer cannot recompute the tensors that it lists (CheapRecompute); empty: it can.
std::string wrong_recomputed_stash(const Layer& layer, std::span<const int> listed);

/// Why the steps of a layer cannot be run (RecomputeSteps); empty: they can.
std::string wrong_steps(const Layer& layer, std::span<const RecomputeStep> steps);

/// Checks that the tensor ranks can divide what recomputed blocks keep.
Refusals check_partition(const Model& model, const LayerContext& context);

/// Whether each tensor rank keeps only its part of this input. False for sharded inputs and for inputs of the weight
/// gradient.
bool is_partitioned(const TensorSpec& input);

/// Whether this input is kept on the host with StageRecompute::on_host. False for inputs of the weight gradient.
bool is_hosted(const TensorSpec& input);

} // namespace triax::executor
