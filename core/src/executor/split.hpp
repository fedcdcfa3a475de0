// SPDX-License-Identifier: Apache-2.0
// Which layers each stage has.
//
// Threads: pure. Ownership: values. Blocking: never.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/error.hpp"
#include "triax/model.hpp"

namespace triax::executor {

struct StageLayers {
  int first = 0, count = 0;
};

/// Blocks as `split` says, or as even as it goes with the larger stages first; what a model has before its blocks goes
/// to the first stage, what it has after them to the last. `split` must have passed check_split.
std::vector<StageLayers> split_layers(const Model& model, int stages, std::span<const std::int64_t> split);

/// Bytes that the largest boundary between two stages carries for one microbatch.
std::size_t largest_boundary(const Model& model, const LayerContext& context, std::span<const StageLayers> split);

/// Whether every tensor between two stages divides into equal parts, one for each tensor rank.
Support check_scatter(const Model& model, const LayerContext& context, std::span<const StageLayers> split);

/// Whether every stage gets a layer and the split counts all blocks.
Support check_split(const Model& model, int stages, std::span<const std::int64_t> split);

} // namespace triax::executor
