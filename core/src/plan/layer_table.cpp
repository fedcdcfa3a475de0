// SPDX-License-Identifier: Apache-2.0
#include "plan/layer_table.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "executor/split.hpp"
#include "plugin/call_guard.hpp"
#include "train/cheap_recompute_check.hpp"
#include "train/memory_ranks.hpp"
#include "train/rank_setup.hpp"
#include "triax/cheap_recompute.hpp"

namespace triax::plan {

namespace {

double bytes_in(DType dtype, const Shape& shape) {
  return static_cast<double>(TensorView(nullptr, dtype, shape).bytes());
}

/// Counts a tensor that is kept from the forward to the backward.
void count_kept(KeptBytes& kept, Life life, double bytes) {
  if (life == Life::forward_to_input) kept.until_input += bytes;
  if (life == Life::forward_to_weight) kept.until_weight += bytes;
}

/// Without the tensors of the stash that are recomputed.
KeptBytes kept_of(const Layer& layer, std::span<const int> recomputed) {
  KeptBytes out;
  const std::span<const StashSpec> stash = layer.stash();
  for (std::size_t at = 0; at < stash.size(); ++at)
    if (std::ranges::find(recomputed, static_cast<int>(at)) == recomputed.end())
      count_kept(out, stash[at].life, bytes_in(stash[at].dtype, stash[at].shape));
  for (const TensorSpec& spec : layer.inputs())
    if (is_floating(spec.dtype)) count_kept(out, spec.life, bytes_in(spec.dtype, spec.shape));
  return out;
}

void add_once(Refusals& to, const Refusals& refusals) {
  for (const Refusal& refusal : refusals)
    if (std::ranges::find(to, refusal) == to.end()) to.add(refusal);
}

} // namespace

LayerTable::TensorRank::TensorRank(const config::RunConfig& of, int tensor, Log& log)
    : run([&] {
        config::RunConfig out = of;
        out.parallel.pipeline = out.parallel.data = 1;
        out.parallel.tensor = tensor;
        return out;
      }()),
      layout(train::layout_of(run)),
      plugins(run, layout, 0, 1, log) {}

LayerTable::LayerTable(const config::RunConfig& run, const cost::Cluster& cluster, const cost::CodeTraits& code,
                       Log& log)
    : run_(run), log_(log), costs_(cluster, code), collectives_(cluster), devices_per_node_(cluster.node.devices) {
  TensorRank& of = rank_of(1);
  const Model& model = of.plugins.model();
  LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  context.sequence_parallel = false;
  kinds_ = train::layer_kinds(model, context);
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  for (std::size_t number = 0; number < kinds_.size(); ++number) {
    const auto kind = static_cast<std::size_t>(kinds_[number]);
    if (kind == first_of_kind_.size()) {
      first_of_kind_.push_back(static_cast<int>(number));
      block_of_kind_.emplace_back();
    }
    if (blocks.has(static_cast<int>(number)) && !block_of_kind_[kind]) block_of_kind_[kind] = static_cast<int>(number);
  }
}

LayerTable::TensorRank& LayerTable::rank_of(int tensor) {
  std::unique_ptr<TensorRank>& out = ranks_[tensor];
  if (!out) out = std::make_unique<TensorRank>(run_, tensor, log_);
  return *out;
}

LayerContext LayerTable::context_of(const TensorRank& rank, std::int64_t micro, bool sequence) {
  LayerContext out = train::layer_context(rank.run, rank.plugins.model(), rank.layout, 0);
  out.micro = micro;
  out.sequence_parallel = sequence;
  return out;
}

cost::SupportsCall LayerTable::supports_of(const TensorRank& rank) const {
  return [this, &rank](const OpCall& call) {
    return plugin::guarded_call(run_.kernels.name, "supports", [&] { return rank.plugins.kernels().supports(call); });
  };
}

std::unique_ptr<Layer> LayerTable::make_layer(const Model& model, int number, const LayerContext& context) const {
  return plugin::guarded_call(run_.model.name, "layer", [&] { return model.layer(number, context); });
}

const std::vector<CostedLayer>& LayerTable::layers(int tensor, std::int64_t micro, bool sequence) {
  std::vector<CostedLayer>& costed_layers = layers_[{tensor, micro, sequence}];
  if (!costed_layers.empty()) return costed_layers;
  std::vector<CostedLayer> out; // kept only if no plugin throws
  const TensorRank& of = rank_of(tensor);
  const LayerContext context = context_of(of, micro, sequence);
  const cost::SupportsCall supports = supports_of(of);
  for (const int number : first_of_kind_) {
    const std::unique_ptr<Layer> layer = make_layer(of.plugins.model(), number, context);
    CostedLayer& costed = out.emplace_back();
    costed.time = costs_.of(*layer, context, supports);
    costed.kept = kept_of(*layer, {});
    for (const TensorSpec& spec : layer->inputs())
      if (is_floating(spec.dtype)) costed.input_bytes += bytes_in(spec.dtype, spec.shape);
  }
  costed_layers = std::move(out);
  return costed_layers;
}

const std::vector<LayerLoad>& LayerTable::loads(int tensor, std::int64_t micro, bool sequence, Recompute how) {
  std::vector<LayerLoad>& kept = loads_[{tensor, micro, sequence, how}];
  if (!kept.empty()) return kept;
  std::vector<LayerLoad> out; // kept only if no plugin throws
  const std::vector<CostedLayer>& costed = layers(tensor, micro, sequence);
  for (std::size_t kind = 0; kind < costed.size(); ++kind) {
    LayerLoad& load = out.emplace_back();
    if (how == Recompute::none || how == Recompute::optimal || !block_of_kind_[kind])
      load.kept = costed[kind].kept;
    else if (how == Recompute::full)
      load = full_load(costed[kind], tensor, sequence);
    else
      load = cheap_load(*block_of_kind_[kind], tensor, context_of(rank_of(tensor), micro, sequence));
  }
  kept = std::move(out);
  return kept;
}

LayerLoad LayerTable::full_load(const CostedLayer& layer, int tensor, bool sequence) {
  LayerLoad out{.repeated = layer.time.forward, .kept = {}, .group_bytes = layer.input_bytes};
  if (run_.memory.partition_activations && !sequence && tensor > 1) {
    out.group_bytes = layer.input_bytes / tensor;
    out.repeated.tensor_s += collectives_.seconds(Collective::Kind::all_gather, out.group_bytes,
                                                  cost::placed(tensor, 1, devices_per_node_)) /
                             blocks_of_group(Recompute::full);
  }
  // A plan's memory is that of the device, and copies to and from the host run beside the passes.
  if (train::hosts_inputs(run_, plugins(tensor).kernels().device_kind())) out.group_bytes = 0;
  return out;
}

int LayerTable::blocks_of_group(Recompute how) const {
  if (how == Recompute::cheap) return 1;
  if (how != Recompute::full) return 0;
  const config::PerStage<std::int64_t>& groups = run_.memory.recompute_layers;
  return groups.is_list() ? 1 : static_cast<int>(std::max<std::int64_t>(groups.of(0), 1));
}

LayerLoad LayerTable::cheap_load(int block, int tensor, const LayerContext& context) {
  const TensorRank& of = rank_of(tensor);
  const std::unique_ptr<Layer> layer = make_layer(of.plugins.model(), block, context);
  LayerLoad out;
  out.refusals = train::check_cheap_block(of.run, *layer, context, of.plugins);
  if (!out.refusals.empty()) return out;
  const cost::RepeatedTime time = plugin::guarded_call(
      run_.model.name, "recompute", [&] { return costs_.of_recompute(*layer, context, supports_of(of)); });
  out.repeated = time.pass;
  out.refusals = train::of_kernels(run_, time.refusals);
  out.kept = kept_of(*layer, find_extension<CheapRecompute>(*layer)->recomputed_stash());
  return out;
}

Refusals LayerTable::refusals(int tensor, std::int64_t micro, bool sequence) {
  Refusals out;
  for (const CostedLayer& layer : layers(tensor, micro, sequence))
    add_once(out, train::of_kernels(run_, layer.time.refusals));
  return out;
}

Refusals LayerTable::recompute_refusals(int tensor, std::int64_t micro, bool sequence, Recompute how) {
  Refusals out;
  for (const LayerLoad& load : loads(tensor, micro, sequence, how)) add_once(out, load.refusals);
  return out;
}

const std::vector<double>& LayerTable::tied_elements(int tensor) {
  TensorRank& of = rank_of(tensor);
  const Model& model = of.plugins.model();
  if (of.tied_elements.size() == model.ties().size()) return of.tied_elements;
  const LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  std::vector<double> out;
  for (const Tie& tie : model.ties()) {
    double& elements = out.emplace_back();
    const std::unique_ptr<Layer> layer = model.layer(tie.layer_a, context);
    for (const ParamSpec& spec : layer->params())
      if (spec.name == tie.param_a) elements = static_cast<double>(spec.local.elements());
  }
  of.tied_elements = std::move(out);
  return of.tied_elements;
}

} // namespace triax::plan
