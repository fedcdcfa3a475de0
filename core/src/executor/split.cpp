// SPDX-License-Identifier: Apache-2.0
// Splits a model's layers into stages.
#include "executor/split.hpp"

#include <algorithm>
#include <numeric>

#include "executor/model_error.hpp"

namespace triax::executor {

std::vector<StageLayers> split_layers(const Model& model, int stages, std::span<const std::int64_t> split) {
  const ModelInfo info = model.info();
  const int blocks = info.blocks;
  const bool are_layers = blocks >= 0 && blocks <= model.count() && info.first_block >= 0;
  require_of_model(are_layers && info.first_block <= model.count() - blocks,
                   "the model has {} layers, but says that {} blocks begin at layer {}", model.count(), blocks,
                   info.first_block);
  std::vector<StageLayers> out;
  int next = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    int count = split.empty() ? blocks / stages + (stage < blocks % stages) : static_cast<int>(split[at]);
    if (stage == 0) count += info.first_block;
    if (stage == stages - 1) count = model.count() - next;
    out.push_back({next, count});
    next += count;
  }
  return out;
}

LayerRange recomputed_layers(const Model& model, bool recompute) {
  if (!recompute) return {};
  const ModelInfo info = model.info();
  return {info.first_block, info.first_block + info.blocks};
}

bool outlives_forward(Life life) {
  return life == Life::forward_to_input || life == Life::forward_to_weight;
}

std::string wrong_recomputed_stash(const Layer& layer, std::span<const int> listed) {
  const auto stash = layer.stash();
  std::vector<bool> found(stash.size(), false);
  for (const int index : listed) {
    const auto i = static_cast<std::size_t>(index);
    if (index < 0 || i >= stash.size() || !outlives_forward(stash[i].life))
      return text("{}: recomputed_stash() lists {}, which is not a tensor that a backward reads from its forward",
                  layer.name(), index);
    if (found[i]) return text("{}: recomputed_stash() lists {} twice", layer.name(), index);
    found[i] = true;
  }
  return {};
}

std::string wrong_steps(const Layer& layer, std::span<const RecomputeStep> steps) {
  const auto stash = layer.stash();
  std::vector<bool> is_written(stash.size(), false);
  for (const RecomputeStep& step : steps) {
    for (const std::vector<int>* const list : {&step.writes, &step.reads})
      for (const int index : *list)
        if (index < 0 || static_cast<std::size_t>(index) >= stash.size() ||
            !outlives_forward(stash[static_cast<std::size_t>(index)].life))
          return text("{}: the step \"{}\" lists {}, which is not a tensor that a backward reads from its forward",
                      layer.name(), step.name, index);
    for (const int index : step.reads)
      if (!is_written[static_cast<std::size_t>(index)])
        return text("{}: the step \"{}\" reads \"{}\", which no earlier step writes", layer.name(), step.name,
                    stash[static_cast<std::size_t>(index)].name);
    for (const int index : step.writes) is_written[static_cast<std::size_t>(index)] = true;
  }
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (outlives_forward(stash[i].life) && !is_written[i])
      return text("{}: no step writes \"{}\"", layer.name(), stash[i].name);
  return {};
}

std::size_t largest_boundary(const Model& model, const LayerContext& context, std::span<const StageLayers> split) {
  std::size_t largest = 0;
  for (const StageLayers& stage : split) {
    if (stage.first == 0) continue;
    const std::unique_ptr<Layer> before = model.layer(stage.first - 1, context);
    std::size_t bytes = 0;
    for (const TensorSpec& spec : before->outputs()) bytes += TensorView(nullptr, spec.dtype, spec.shape).bytes();
    largest = std::max(largest, bytes);
  }
  return largest;
}

Refusals check_scatter(const Model& model, const LayerContext& context, std::span<const StageLayers> split) {
  Refusals out;
  for (const StageLayers& stage : split) {
    if (stage.first == 0) continue;
    const std::unique_ptr<Layer> before = model.layer(stage.first - 1, context);
    for (const TensorSpec& spec : before->outputs())
      if (spec.sharded) {
        out.add(make_refusal(ErrorCode::kConflict, {"parallel.scatter_gather", "parallel.sequence"},
                             "parallel.scatter_gather cannot be combined with parallel.sequence: the boundaries are "
                             "already divided")
                    .with_hint("set parallel.scatter_gather = false"));
        return out; // the same for every stage
      } else if (spec.shape.elements() % context.tensor_size() != 0)
        out.add(make_refusal(ErrorCode::kNotDivisible, {"parallel.scatter_gather", "parallel.tensor"},
                             "parallel.scatter_gather: \"{}\", which {} sends, has {} elements, which is not divisible "
                             "by parallel.tensor = {}",
                             spec.name, before->name(), spec.shape.elements(), context.tensor_size())
                    .with_hint("leave parallel.scatter_gather out, or use another parallel.tensor"));
  }
  return out;
}

bool is_partitioned(const TensorSpec& input) {
  return !input.sharded && is_hosted(input);
}

bool is_hosted(const TensorSpec& input) {
  const bool from_data = input.name == "tokens" || input.name == "targets";
  return !from_data && (input.life == Life::forward_only || input.life == Life::forward_to_input);
}

Refusals check_partition(const Model& model, const LayerContext& context) {
  const LayerRange blocks = recomputed_layers(model, true);
  for (int number = blocks.begin; number < blocks.end; ++number) {
    const std::unique_ptr<Layer> block = model.layer(number, context);
    for (const TensorSpec& spec : block->inputs())
      if (is_partitioned(spec) && spec.shape.elements() % context.tensor_size() != 0)
        return make_refusal(ErrorCode::kNotDivisible, {"memory.partition_activations", "parallel.tensor"},
                            "memory.partition_activations: \"{}\", which {} keeps, has {} elements, which is not "
                            "divisible by parallel.tensor = {}",
                            spec.name, block->name(), spec.shape.elements(), context.tensor_size())
            .with_hint("leave memory.partition_activations out, or use another parallel.tensor");
  }
  return {};
}

Refusals check_split(const Model& model, int stages, std::span<const std::int64_t> split) {
  const int blocks = model.info().blocks;
  Refusals out;
  const std::int64_t sum = std::accumulate(split.begin(), split.end(), std::int64_t{0});
  const bool right_sum = split.empty() || sum == blocks;
  if (!right_sum)
    out.add(make_refusal(ErrorCode::kConflict, {"parallel.split", "model.layers"},
                         "parallel.split counts {} blocks, but model.layers is {}", sum, blocks)
                .with_hint("list one number of blocks for each stage; together {}", blocks));
  const std::vector<StageLayers> layers = split_layers(model, stages, split);
  for (int stage = 0; stage < stages; ++stage) {
    if (layers[static_cast<std::size_t>(stage)].count != 0) continue;
    if (split.empty()) {
      out.add(make_refusal(ErrorCode::kOutOfRange, {"model.layers", "parallel.pipeline", "parallel.chunks"},
                           "model.layers = {} is too few for {} stages (parallel.pipeline x parallel.chunks): stage {} "
                           "would have no layer",
                           blocks, stages, stage)
                  .with_hint("use fewer stages, or a model with more layers"));
      break; // the hint is the same for every stage
    }
    if (right_sum || stage != stages - 1)
      out.add(make_refusal(ErrorCode::kOutOfRange, {"parallel.split"}, "parallel.split leaves stage {} without a layer",
                           stage)
                  .with_hint("give it a block; only the first and the last stage have other layers too"));
  }
  return out;
}

} // namespace triax::executor
