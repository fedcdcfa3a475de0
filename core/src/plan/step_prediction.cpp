// SPDX-License-Identifier: Apache-2.0
#include "plan/step_prediction.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cost/collective_cost.hpp"
#include "cost/layer_cost.hpp"
#include "cost/operation_cost.hpp"
#include "cost/pipeline_cost.hpp"
#include "executor/split.hpp"
#include "schedule/lower.hpp"
#include "train/cheap_recompute_check.hpp"
#include "train/plugins.hpp"
#include "train/rank_placement.hpp"
#include "train/rank_setup.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {

namespace {

using Kind = Collective::Kind;

class StepCost {
 public:
  StepCost(const PredictionRequest& request, Log& log)
      : run_(request.run),
        cluster_(request.cluster),
        code_(request.code),
        layout_(train::layout_of(run_)),
        plugins_(run_, layout_, 0, 1, log),
        model_(plugins_.model()),
        context_(train::layer_context(run_, model_, layout_, 0)),
        shape_(train::pipeline_shape(run_)),
        split_(executor::split_layers(model_, shape_.stages(), run_.parallel.split)),
        operations_(cluster_.device, code_),
        collectives_(cluster_) {
    stage_rank_ = plugins_.stage_rank();
    cost_layers();
  }

  StepPrediction take() {
    StepPrediction out;
    const int block = model_.info().first_block;
    out.block_forward_s = layers_.at(static_cast<std::size_t>(block)).forward.all_s();
    out.block_backward_s = backward_s(block);
    add_pipeline(out);
    out.optimizer_s = optimizer_s();
    out.fixed_s = cluster_.step.fixed_s.value;
    out.step_s = out.passes_s + out.reduction_s + out.optimizer_s + out.fixed_s;
    return out;
  }

 private:
  void cost_layers() {
    const cost::LayerCost costs(cluster_, code_);
    const executor::LayerRange blocks = executor::recomputed_layers(model_, true);
    for (int number = 0; number < model_.count(); ++number) {
      const std::unique_ptr<Layer> layer = model_.layer(number, context_);
      layers_.push_back(costs.of(*layer, context_));
      const Recompute how = blocks.has(number) ? run_.memory.recompute_of(stage_of_layer(number)) : Recompute::none;
      double& repeated_s = repeated_s_.emplace_back();
      if (how == Recompute::full) repeated_s = layers_.back().forward.all_s();
      if (how == Recompute::cheap) repeated_s = costs.of_recompute(*layer, context_).pass.all_s();
    }
  }

  const cost::LayerTime& layer(int number) const { return layers_.at(static_cast<std::size_t>(number)); }
  double backward_s(int number) const {
    const cost::LayerTime& of = layer(number);
    return of.input.all_s() + of.weight.all_s() + repeated_s_.at(static_cast<std::size_t>(number));
  }

  cost::StageTime stage_time(int stage) const {
    const executor::StageLayers& of = split_.at(static_cast<std::size_t>(stage));
    cost::StageTime out;
    for (int number = of.first; number < of.first + of.count; ++number) {
      out.forward_s += layer(number).forward.all_s();
      out.backward_s += backward_s(number);
    }
    return out;
  }
  double stage_parameters(int stage) const {
    const executor::StageLayers& of = split_.at(static_cast<std::size_t>(stage));
    double out = 0;
    for (int number = of.first; number < of.first + of.count; ++number) out += layer(number).parameters;
    return out;
  }

  /// The ranks of a stage are t * d apart from those of the next.
  cost::LinkTime link_time(int stage) const {
    const int stride = layout_.tensor_size() * layout_.data_size(), devices = cluster_.node.devices;
    const bool crosses = rank_of(stage) * stride / devices != rank_of(stage + 1) * stride / devices;
    const executor::StageLayers& of = split_.at(static_cast<std::size_t>(stage));
    const bool scattered = train::boundaries(run_) == schedule::Boundaries::scattered;
    return cost::link_time(cluster_, code_, layer(of.first + of.count - 1).boundary_bytes,
                           scattered ? layout_.tensor_size() : 1, crosses);
  }

  void add_pipeline(StepPrediction& out) const {
    cost::PipelineTimes times;
    for (int stage = 0; stage < shape_.stages(); ++stage) times.stages.push_back(stage_time(stage));
    for (int stage = 0; stage + 1 < shape_.stages(); ++stage) times.links.push_back(link_time(stage));
    const cost::RankEnds ends =
        shape_.stages() == 1
            ? cost::RankEnds{shape_.microbatches * (times.stages[0].forward_s + times.stages[0].backward_s)}
            : cost::pipeline_ends([this](const PipelineShape& shape) { return plugins_.rows(shape); }, shape_,
                                  train::boundaries(run_), times);
    std::vector<double> parameters(ends.size()), last_backward(ends.size());
    for (int stage = 0; stage < shape_.stages(); ++stage) {
      const auto rank = static_cast<std::size_t>(rank_of(stage));
      parameters[rank] += stage_parameters(stage);
      last_backward[rank] += times.stages[static_cast<std::size_t>(stage)].backward_s;
    }
    double end = 0;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      out.passes_s = std::max(out.passes_s, ends[rank]);
      end = std::max(end, ends[rank] + reduction_s(parameters[rank], last_backward[rank]));
    }
    out.reduction_s = end - out.passes_s + tied_s();
  }

  double reduction_s(double parameters, double last_backward_s) const {
    const int data = layout_.data_size();
    if (data == 1) return 0;
    const double reduction =
        collectives_.seconds(Kind::all_reduce, cost::reduction_bytes(code_, run_.train.master) * parameters,
                             cost::placed(data, layout_.tensor_size(), cluster_.node.devices));
    if (code_.overlaps_reduction) return std::max(0.0, reduction - last_backward_s);
    return reduction + operations_.pass(code_.reduction_copy_bytes * parameters).seconds;
  }

  /// All-reduces of parameters that two pipeline ranks share.
  double tied_s() const {
    double out = 0;
    for (const Tie& tie : model_.ties()) {
      const int from = rank_of_layer(tie.layer_a), to = rank_of_layer(tie.layer_b);
      if (from == to) continue;
      const std::unique_ptr<Layer> of = model_.layer(tie.layer_a, context_);
      for (const ParamSpec& spec : of->params())
        if (spec.name == tie.param_a)
          out += collectives_.seconds(
              Kind::all_reduce,
              cost::reduction_bytes(code_, run_.train.master) * static_cast<double>(spec.local.elements()),
              cost::placed(2, layout_.tensor_size() * layout_.data_size(), cluster_.node.devices));
    }
    return out;
  }
  int rank_of(int stage) const { return stage_rank_.at(static_cast<std::size_t>(stage)); }
  int stage_of_layer(int number) const {
    int stage = 0;
    while (number >=
           split_.at(static_cast<std::size_t>(stage)).first + split_.at(static_cast<std::size_t>(stage)).count)
      ++stage;
    return stage;
  }
  int rank_of_layer(int number) const { return rank_of(stage_of_layer(number)); }

  double optimizer_s() const {
    double most = 0;
    std::map<int, double> parameters; // by rank
    for (int stage = 0; stage < shape_.stages(); ++stage)
      most = std::max(most, parameters[rank_of(stage)] += stage_parameters(stage));
    const double bytes =
        cost::update_bytes(code_, plugins_.optimizer_traits().state.size(), run_.train.master, run_.train.compute);
    return operations_.pass(bytes * most).seconds;
  }

  const config::RunConfig& run_;
  const cost::Cluster& cluster_;
  const cost::CodeTraits& code_;
  const Layout layout_;
  const train::RankPlugins plugins_;
  const Model& model_;
  const LayerContext context_;
  const PipelineShape shape_;
  const std::vector<executor::StageLayers> split_;
  const cost::OperationCost operations_;
  const cost::CollectiveCost collectives_;
  std::vector<int> stage_rank_; // pipeline rank of each stage
  std::vector<cost::LayerTime> layers_;
  std::vector<double> repeated_s_; // by layer, before its backward
};

/// Plugins that throw are known by it.
class PluginActivity {
 public:
  PluginActivity() {
    if (!RankActivity::current()) bound_.emplace(own_);
  }

 private:
  RankActivity own_;
  std::optional<RankActivity::Binding> bound_;
};

} // namespace

Refusals check_prediction(const config::RunConfig& run, Log& log) {
  const PluginActivity activity;
  const std::int64_t ranks =
      std::int64_t{run.parallel.pipeline} * run.parallel.tensor * run.parallel.data; // each is at most 65536
  if (ranks > train::kMaxWorld)
    return make_refusal(ErrorCode::kTooLarge, {"parallel.data", "parallel.tensor", "parallel.pipeline"},
                        "a layout of {} ranks is too large to predict; the limit is {}", ranks, train::kMaxWorld)
        .with_hint("use smaller values of parallel.data, parallel.tensor or parallel.pipeline");
  const Layout layout = train::layout_of(run);
  const PipelineShape shape = train::pipeline_shape(run);
  const std::int64_t simulated = std::min<std::int64_t>(run.microbatches(), 5 * std::int64_t{shape.pipeline});
  if (simulated * shape.stages() > schedule::kMaxActions)
    return make_refusal(ErrorCode::kTooLarge, {"parallel.pipeline", "parallel.chunks"},
                        "parallel.pipeline = {} with parallel.chunks = {} is too large to predict: {} passes of each "
                        "direction are simulated; the limit is {}",
                        shape.pipeline, shape.chunks, simulated * shape.stages(), schedule::kMaxActions)
        .with_hint("use a smaller parallel.pipeline");
  const train::RankPlugins plugins(run, layout, 0, 1, log);
  train::Placement placement;
  placement.ranks = layout.world_size();
  placement.ranks_are_threads = true;
  Refusals out = plugins.refusals(layout, placement, false);
  out.add(executor::check_split(plugins.model(), shape.stages(), run.parallel.split));
  if (out.empty()) out = train::check_cheap_recompute(run, layout, plugins);
  return out;
}

StepPrediction predict_step(const PredictionRequest& request, Log& log) {
  const PluginActivity activity;
  return StepCost(request, log).take();
}

double gpt_step_flops(double batch, double sequence, double layers, double hidden, double vocab) {
  return 96 * batch * sequence * layers * hidden * hidden *
         (1 + sequence / (6 * hidden) + vocab / (16 * layers * hidden));
}

} // namespace triax::plan
