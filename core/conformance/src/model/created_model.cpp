// SPDX-License-Identifier: Apache-2.0
#include "created_model.hpp"

#include <algorithm>
#include <array>
#include <typeinfo>

#include "triax/rank_activity.hpp"

namespace triax::conformance {

namespace {

constexpr std::uint64_t kDropoutSeed = 7;
constexpr std::size_t kMaxOutputs = 16;

LayerContext context_of(const ModelShape& shape, const Layout& layout, int rank, std::int64_t vocab,
                        std::int64_t sequence) {
  return {.layout = layout,
          .rank = rank,
          .micro = shape.micro,
          .vocab = vocab,
          .compute = shape.compute,
          .seed = kDropoutSeed,
          .sequence_parallel = shape.sequence_parallel,
          .sequence = sequence,
          .max_rows = shape.max_rows > 0 ? std::min(shape.max_rows, sequence) : sequence,
          .purpose = shape.purpose};
}

bool supports_recomputation(const Model& model, const ModelShape& shape, const Layout& layout, std::int64_t vocab) {
  ModelRequest request = request_of(shape, vocab);
  request.recompute = true;
  return shape.purpose == Purpose::train && model.supports(request, layout).empty();
}

} // namespace

std::string to_text(const ModelShape& shape) {
  std::string out(name_of(shape.compute));
  if (shape.tensor > 1) out += text(", {} tensor ranks", shape.tensor);
  if (shape.pipeline > 1) out += text(", {} pipeline ranks", shape.pipeline);
  if (shape.sequence_parallel) out += ", parallel.sequence";
  if (shape.purpose == Purpose::generate) out += ", generating";
  return out;
}

DType master_type(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

ModelRequest request_of(const ModelShape& shape, std::int64_t vocab) {
  return {
      .vocab = vocab, .compute = shape.compute, .sequence_parallel = shape.sequence_parallel, .purpose = shape.purpose};
}

const char* name_of(Pass pass) noexcept {
  constexpr const char* kNames[] = {"forward", "forward again", "backward_input", "backward_weight"};
  return kNames[static_cast<std::size_t>(pass)];
}

bool is_data(const TensorSpec& spec) {
  return spec.name == "tokens" || spec.name == "targets";
}

bool is_result(const TensorSpec& spec) {
  return spec.name == "loss" || spec.name == "logits";
}

LayerSpecs::LayerSpecs(const Layer& layer)
    : params(layer.params().begin(), layer.params().end()),
      stash(layer.stash().begin(), layer.stash().end()),
      inputs(layer.inputs().begin(), layer.inputs().end()),
      outputs(layer.outputs().begin(), layer.outputs().end()) {}

std::size_t find_output(const LayerSpecs& producer, const TensorSpec& input, std::string_view producer_name,
                        std::string_view consumer_name) {
  const auto found = std::ranges::find(producer.outputs, input.name, &TensorSpec::name);
  if (found == producer.outputs.end())
    throw Error(text("{} takes \"{}\", which {} does not make", consumer_name, input.name, producer_name));
  if (found->shape != input.shape || found->dtype != input.dtype)
    throw Error(text("{} takes \"{}\" as {} {}, but {} makes {} {}", consumer_name, input.name, name_of(input.dtype),
                     input.shape, producer_name, name_of(found->dtype), found->shape));
  return static_cast<std::size_t>(found - producer.outputs.begin());
}

CreatedModel::CreatedModel(const ModelSubject& subject, const ModelShape& shape, int rank, int first, int end)
    : shape_(shape),
      layout_(Layout::ptd(shape.pipeline, shape.tensor, 1)),
      model_(subject.model({subject.options, null_log(), layout_, rank, 1})),
      context_(context_of(shape, layout_, rank, subject.support.vocab, model_->info().sequence)),
      first_(first),
      may_repeat_(supports_recomputation(*model_, shape, layout_, subject.support.vocab)) {
  const int count = model_->count();
  for (int index = first; index < (end < 0 ? count : end); ++index) {
    layers_.push_back(model_->layer(index, context_));
    TRIAX_REQUIRE(layers_.back() != nullptr, "layer({}) returns no layer", index);
    specs_.emplace_back(*layers_.back());
  }
  if (layers_.empty()) throw Error(text("count() is {}", count));
}

bool CreatedModel::is_block(std::size_t at) const {
  const ModelInfo info = model_->info();
  const int number = first_ + static_cast<int>(at);
  return number >= info.first_block && number - info.first_block < info.blocks;
}

bool CreatedModel::has_pass(Pass pass, std::size_t at) const {
  return pass != Pass::recompute || (may_repeat_ && is_block(at));
}

std::uint32_t CreatedModel::value_site(std::size_t at, const ParamSpec& spec) const {
  for (const Tie& tie : model_->ties()) {
    if (tie.layer_b != first_ + static_cast<int>(at) || tie.param_b != spec.name) continue;
    const std::unique_ptr<Layer> other = model_->layer(tie.layer_a, context_);
    const auto params = other->params();
    const auto found = std::ranges::find(params, tie.param_a, &ParamSpec::name);
    TRIAX_REQUIRE(found != params.end(), "ties() names {} of layer {}, which it does not have", tie.param_a,
                  tie.layer_a);
    return found->site;
  }
  return spec.site;
}

LayerViews CreatedModel::views_without_data(std::size_t at) const {
  const LayerSpecs& specs = specs_[at];
  const auto without_data = [](DType dtype, const Shape& shape) { return TensorView(nullptr, dtype, shape); };
  LayerViews out;
  for (const ParamSpec& spec : specs.params) {
    out.params.push_back(without_data(shape_.compute, spec.local));
    out.grads.push_back(without_data(master_type(shape_.compute), spec.local));
  }
  for (const StashSpec& spec : specs.stash) out.stash.push_back(without_data(spec.dtype, spec.shape));
  for (const TensorSpec& spec : specs.inputs) {
    out.in.push_back(without_data(spec.dtype, spec.shape));
    out.din.push_back(is_data(spec) ? TensorView() : out.in.back());
  }
  for (const TensorSpec& spec : specs.outputs) {
    out.out.push_back(without_data(spec.dtype, spec.shape));
    out.dout.push_back(is_result(spec) ? TensorView() : out.out.back());
  }
  return out;
}

void run_pass(Layer& layer, Pass pass, const LayerCall& call, const LayerViews& views) {
  static const std::array<TensorView, kMaxOutputs> kNoOutputs;
  constexpr const char* kFunctions[] = {"forward", "forward", "backward_input", "backward_weight"};
  call_plugin(kFunctions[static_cast<std::size_t>(pass)], typeid(layer), [&] {
    switch (pass) {
      case Pass::forward:
        return layer.forward(call, views.params, views.in, views.out, views.stash);
      case Pass::recompute: {
        LayerCall again = call;
        again.again = true;
        TRIAX_REQUIRE(views.out.size() <= kMaxOutputs, "a layer has {} outputs", views.out.size());
        return layer.forward(again, views.params, views.in, Views(kNoOutputs).first(views.out.size()), views.stash);
      }
      case Pass::backward_input:
        return layer.backward_input(call, views.params, views.in, views.dout, views.din, views.stash, views.grads);
      case Pass::backward_weight:
        return layer.backward_weight(call, views.in, views.stash, views.grads);
    }
  });
}

} // namespace triax::conformance
