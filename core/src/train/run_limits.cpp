// SPDX-License-Identifier: Apache-2.0
#include "train/run_limits.hpp"

#include <cstdint>

#include "schedule/lower.hpp"
#include "train/rank_placement.hpp"

namespace triax::train {

Refusals check_world(const config::RunConfig& run) {
  const std::int64_t world = std::int64_t{run.parallel.pipeline} * run.parallel.tensor;
  if (world <= kMaxWorld && world * run.parallel.data <= kMaxWorld) return {};
  return make_refusal(ErrorCode::kTooLarge, {"parallel.pipeline", "parallel.tensor", "parallel.data"},
                      "parallel.pipeline = {} x parallel.tensor = {} x parallel.data = {} is more than {} ranks",
                      run.parallel.pipeline, run.parallel.tensor, run.parallel.data, kMaxWorld)
      .with_hint("use smaller sizes");
}

Refusals check_step_size(const config::RunConfig& run) {
  const std::int64_t stages = std::int64_t{run.parallel.pipeline} * run.parallel.chunks;
  if (stages * run.microbatches() > schedule::kMaxActions)
    return make_refusal(ErrorCode::kUnsupported, {"batch.global", "batch.micro"},
                        "batch.global = {} makes {} microbatches of batch.micro = {} on each of {} stages: more than "
                        "{} actions in a step",
                        run.batch.global, run.microbatches(), run.batch.micro, stages, schedule::kMaxActions)
        .with_hint("use a larger batch.micro or a smaller batch.global");
  if (run.parallel.pipeline > schedule::kMaxRanks)
    return make_refusal(ErrorCode::kTooLarge, {"parallel.pipeline"}, "parallel.pipeline = {} is more than {}",
                        run.parallel.pipeline, schedule::kMaxRanks)
        .with_hint("use more parallel.tensor or parallel.data");
  return {};
}

void require_count(const Model& model) {
  constexpr int kMaxLayers = 1 << 16;
  if (const int count = model.count(); count > kMaxLayers)
    throw Error(text("{} layers are more than {}", count, kMaxLayers));
}

void require_actions(const Schedule& rows) {
  constexpr auto kMaxActions = static_cast<std::size_t>(8 * schedule::kMaxActions);
  std::size_t actions = 0;
  for (int rank = 0; rank < rows.ranks(); ++rank) actions += rows.row(rank).size();
  if (actions > kMaxActions) throw Error(text("{} actions are more than {}", actions, kMaxActions));
}

} // namespace triax::train
