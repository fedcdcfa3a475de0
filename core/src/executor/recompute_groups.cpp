// SPDX-License-Identifier: Apache-2.0
#include "executor/recompute_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace triax::executor {

int best_group(const Layer& block, std::span<const RecomputedStage> stages) {
  std::size_t input = 0, stash = 0;
  for (const TensorSpec& spec : block.inputs()) input += TensorView(nullptr, spec.dtype, spec.shape).bytes();
  for (const StashSpec& spec : block.stash())
    if (spec.life == Life::forward_to_input || spec.life == Life::forward_to_weight)
      stash += TensorView(nullptr, spec.dtype, spec.shape).bytes();
  int most = 1;
  for (const RecomputedStage& stage : stages) most = std::max(most, stage.blocks);
  std::size_t least = std::numeric_limits<std::size_t>::max();
  int best = 1;
  for (int group = 1; group <= most; ++group) {
    std::size_t bytes = static_cast<std::size_t>(group) * stash + static_cast<std::size_t>(group - 1) * input;
    for (const RecomputedStage& stage : stages)
      bytes += static_cast<std::size_t>((stage.blocks + group - 1) / group * stage.microbatches) * input;
    if (bytes >= least) continue;
    least = bytes;
    best = group;
  }
  return best;
}

} // namespace triax::executor
