// SPDX-License-Identifier: Apache-2.0
#include "planted_layer.hpp"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <triax/element_type.hpp>
#include <utility>

namespace triax::model_planted {

namespace {

/// Changes one element, unless the view has no data (dry run).
template <class Change>
void change_element(const LayerCall& call, const TensorView& view, std::int64_t at, const Change& change) {
  if (!view.data()) return;
  call.stream.ready();
  with_type_among<float, double>(view.dtype(), [&](auto zero) {
    using T = decltype(zero);
    view.as<T>()[at] = static_cast<T>(change(static_cast<double>(view.as<T>()[at])));
  });
}

double first_element(const TensorView& view) {
  double out = 0;
  if (view.data())
    with_type_among<float, double, std::int32_t>(view.dtype(), [&](auto zero) { out = view.as<decltype(zero)>()[0]; });
  return out;
}

} // namespace

PlantedLayer::PlantedLayer(std::unique_ptr<Layer> layer, const LayerContext& context, std::string fault, int object)
    : layer_(std::move(layer)),
      cheap_(find_extension<CheapRecompute>(*layer_)),
      offered_(find_extension<RecomputeSteps>(*layer_)),
      context_(context),
      fault_(std::move(fault)),
      params_(layer_->params().begin(), layer_->params().end()),
      stash_(layer_->stash().begin(), layer_->stash().end()),
      inputs_(layer_->inputs().begin(), layer_->inputs().end()),
      outputs_(layer_->outputs().begin(), layer_->outputs().end()),
      last_stash_(stash_.size()),
      numbers_(static_cast<std::size_t>(context.micro)) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
  if (cheap_) recomputed_.assign(cheap_->recomputed_stash().begin(), cheap_->recomputed_stash().end());
  if (has("recompute_listed_twice") && cheap_) recomputed_.push_back(recomputed_.front());
  if (has("recompute_listed_beyond") && cheap_) recomputed_.push_back(static_cast<int>(stash_.size()));
  if (offered_) change_steps();
  change_descriptions(object);
  change_axes();
}

void PlantedLayer::change_steps() {
  steps_.assign(offered_->steps().begin(), offered_->steps().end());
  if (steps_.empty()) return; // of a layer that generates
  if (has("step_reads_more")) steps_.back().reads.clear();
  if (has("step_writes_more")) steps_.front().writes.pop_back();
  if (has("step_missing")) steps_.erase(steps_.begin());
}

/// Adds a parameter that no pass uses.
void PlantedLayer::add_parameter(std::int64_t elements) {
  params_.push_back(params_.front());
  ParamSpec& added = params_.back();
  added.name = "unused";
  added.global = added.local = Shape{elements};
  added.cuts.clear();
  added.partial.clear();
  added.site += 1u << 16;
}

void PlantedLayer::change_descriptions(int object) {
  if (has("size_by_rank")) add_parameter(3 + context_.tensor_rank());
  if (has("size_by_object")) add_parameter(3 + object % 2);
  if (has("std")) params_[0].init.std = 1.0 / context_.tensor_size();
  if (has("same_site")) params_[1].site = params_[0].site;
  if (has("cut"))
    for (ParamSpec& spec : params_)
      for (Cut& cut : spec.cuts)
        if (cut.begin > 0) --cut.begin, --cut.end;
  if (has("sharded")) outputs_[0].sharded = true;
  if (has("targets_when_generating") && context_.purpose == Purpose::generate)
    inputs_.push_back({"targets", {context_.max_rows, context_.micro}, DType::i32});
  if (has("cache_in_training") && context_.purpose == Purpose::train)
    for (StashSpec& spec : stash_)
      if (spec.life == Life::forward_to_weight) spec.life = Life::sequence;
  if (has("cache_of_call"))
    for (StashSpec& spec : stash_)
      if (spec.life == Life::sequence) spec.shape[0] = context_.max_rows;
  if (has("short_life"))
    for (StashSpec& spec : stash_)
      if (spec.life == Life::forward_to_weight) spec.life = Life::forward_to_input;
}

void PlantedLayer::change_axes() {
  if (has("partial_over_samples")) params_[0].partial = {std::string(kDataAxis)};
  if (has("partial_of_one_side")) params_[0].partial = {std::string(kTensorAxis)};
  for (ParamSpec& spec : params_) {
    if (has("cut_twice") && !spec.cuts.empty()) spec.cuts.push_back(spec.cuts.front());
    if (has("padded_columns") && spec.cut_along(1)) ++spec.local[1];
    if (has("partial_and_cut") && !spec.cuts.empty()) spec.partial = {spec.cuts.front().axis};
  }
}

Cost PlantedLayer::cost() const {
  Cost cost = layer_->cost();
  if (has("cost")) cost.backward_weight *= 2;
  return cost;
}

LayerCall PlantedLayer::changed(const LayerCall& call) {
  const bool drops = has("always_drops")   ? true
                     : has("never_drops")  ? false
                     : has("counts_calls") ? call.dropout && calls_ < 5
                     : has("pipeline")     ? call.dropout && context_.layout.pipeline_size() == 1
                                           : call.dropout;
  const bool is_alone = has("again_alone") && call.again && !context_.sequence_parallel;
  const bool sums = !has("no_sum") && !is_alone;
  const auto micro = static_cast<std::int64_t>(numbers_.size());
  return {.device = call.device,
          .kernels = call.kernels,
          .stream = call.stream,
          .scratch = call.scratch,
          .groups = sums ? call.groups : no_groups_,
          .samples = has("renumbers_samples") ? TensorView(numbers_.data(), DType::i64, {micro}) : call.samples,
          .dropout = drops,
          .again = call.again,
          .loss_gradient = call.loss_gradient,
          .scalars = has("no_loss_scale") ? nullptr : call.scalars,
          .action = call.action,
          .rows = has("rows") ? Rows{0, call.rows.count} : call.rows};
}

void PlantedLayer::recompute(const LayerCall& call, Views params, Views in, Views stash) {
  if (has("recompute_aborts")) std::abort();
  if (has("recompute_throws")) throw Error("it is not written yet");
  cheap_->recompute(changed(call), params, has("recompute_last") && in[0].data() ? Views(last_in_) : in, stash);
  Communicator* const tensor = call.groups.find(kTensorAxis);
  if (has("recompute_posts") && tensor) {
    const TensorView& listed = stash[static_cast<std::size_t>(recomputed_.front())];
    tensor->wait(tensor->all_reduce(listed, listed, Reduce::max, call.stream), call.stream);
  }
  if (has("recompute"))
    change_element(call, stash[static_cast<std::size_t>(recomputed_stash().back())], 0,
                   [](double value) { return value + 1; });
}

void PlantedLayer::recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) {
  offered_->recompute_step(changed(call), step, params, in, stash);
  const std::vector<int>& written = steps_[static_cast<std::size_t>(step)].writes;
  Communicator* const tensor = call.groups.find(kTensorAxis);
  if (has("step_posts") && tensor && context_.tensor_rank() == 0) {
    const TensorView& listed = stash[static_cast<std::size_t>(written.front())];
    tensor->wait(tensor->all_reduce(listed, listed, Reduce::max, call.stream), call.stream);
  }
  if (has("step"))
    change_element(call, stash[static_cast<std::size_t>(written.back())], 0, [](double value) { return value + 1; });
}

void PlantedLayer::forward(const LayerCall& call, Views params, Views in, Views out, Views stash) {
  const bool reads_early = has("not_ready") || (has("tokens_not_ready") && in[0].dtype() == DType::i32);
  const double early = reads_early ? first_element(in[0]) : 0;
  layer_->forward(changed(call), params, in, out, stash);
  if (out[0].data()) ++calls_;
  if (has("size_by_call") && calls_ == 1) params_.clear();
  if (has("allocates") || (has("again_allocates") && call.again)) kept_ = std::make_unique<int>(calls_);
  if (has("dropout_without_rate") && call.dropout)
    change_element(call, out[0], 0, [](double value) { return value + 1; });
  if (reads_early) change_element(call, out[0], 0, [&](double value) { return value + early - first_element(in[0]); });
  if (has("reads_old_stash")) call.device.add(stash.back(), stash.back(), call.stream);
  if (has("reads_old_stash")) call.device.add(out[0], stash.back(), call.stream);
  if (has("writes_past_the_end")) change_element(call, out[0], out[0].elements(), [](double) { return 1; });
  if (has("recompute_last")) last_in_.assign(in.begin(), in.end());
  if (has("last_stash")) last_stash_.assign(stash.begin(), stash.end());
  if (has("again") && call.again) call.device.fill(stash[0], 0, call.stream);
}

void PlantedLayer::backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                                  Views grads) {
  layer_->backward_input(changed(call), params, in, dout, din, stash, grads);
  if (has("input_gradient")) call.device.add(din[0], dout[0], call.stream);
}

void PlantedLayer::backward_weight(const LayerCall& call, Views in, Views stash, Views grads) {
  if (has("dry_run") && !grads[0].data()) return;
  if (has("overwrites") || (has("overwrites_in_16_bits") && bytes_of(context_.compute) == 2))
    for (const TensorView& grad : grads) call.device.fill(grad, 0, call.stream);
  const double early = has("weight_not_ready") ? first_element(in[0]) : 0;
  layer_->backward_weight(changed(call), in, has("last_stash") ? Views(last_stash_) : stash, grads);
  if (has("weight_not_ready"))
    change_element(call, grads[0], 0, [&](double value) { return value + early - first_element(in[0]); });
  spoil_gradients(call, grads);
  if (has("inputs")) call.device.fill(in[0], 0, call.stream);
}

void PlantedLayer::spoil_gradients(const LayerCall& call, Views grads) const {
  if (has("replicated_gradients_differ") && context_.tensor_rank() == 1)
    for (std::size_t i = 0; i < grads.size(); ++i)
      if (params_[i].cuts.empty()) change_element(call, grads[i], 0, [](double value) { return value * (1 + 1e-14); });
  const bool is_last_of_several = context_.tensor_size() > 1 && context_.tensor_rank() + 1 == context_.tensor_size();
  if (has("padding") || (has("rank_padding") && is_last_of_several))
    change_element(call, grads[0], grads[0].elements() - 1, [](double) { return 1; });
}

} // namespace triax::model_planted
