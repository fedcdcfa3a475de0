// SPDX-License-Identifier: Apache-2.0
#include "executor/recompute_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "executor/split.hpp"

namespace triax::executor {

int best_group_size(const Layer& block, std::span<const RecomputedStage> stages, int parts, bool on_host) {
  std::size_t input = 0, kept = 0, stash = 0;
  for (const TensorSpec& spec : block.inputs()) {
    const std::size_t bytes = TensorView(nullptr, spec.dtype, spec.shape).bytes();
    input += bytes;
    if (on_host && is_hosted(spec)) continue;
    kept += is_partitioned(spec) ? bytes / static_cast<std::size_t>(parts) : bytes;
  }
  for (const StashSpec& spec : block.stash())
    if (spec.life == Life::forward_to_input || spec.life == Life::forward_to_weight)
      stash += TensorView(nullptr, spec.dtype, spec.shape).bytes();
  int max_blocks = 1;
  for (const RecomputedStage& stage : stages) max_blocks = std::max(max_blocks, stage.blocks);
  std::size_t min_bytes = std::numeric_limits<std::size_t>::max();
  int best = 1;
  for (int group = 1; group <= max_blocks; ++group) {
    std::size_t bytes = static_cast<std::size_t>(group) * stash + static_cast<std::size_t>(group - 1) * input;
    for (const RecomputedStage& stage : stages)
      bytes += static_cast<std::size_t>((stage.blocks + group - 1) / group * stage.microbatches) * kept;
    if (bytes >= min_bytes) continue;
    min_bytes = bytes;
    best = group;
  }
  return best;
}

} // namespace triax::executor
