// SPDX-License-Identifier: Apache-2.0
#include "gpt_step.hpp"

#include <filesystem>
#include <string>

#include "support/installation.hpp"

namespace triax::bench {

namespace {

plugin::Instance<Model> make_model(const Options& options, const Layout& layout) {
  const auto file = test::plugin_file("model-gpt");
  return plugin::create<Model>(plugin::load(file, Model::kKind), {options, null_log(), layout, 0, 1});
}

Options options_of(const GptSizes& sizes) {
  Options options;
  options.set("layers", sizes.layers);
  options.set("hidden", sizes.hidden);
  options.set("heads", sizes.heads);
  options.set("sequence", sizes.sequence);
  options.set("inner", std::int64_t{0});
  options.set("norm_eps", 1e-5);
  options.set("dropout", sizes.dropout);
  return options;
}

} // namespace

GptStep::GptStep(KernelSet& kernels, Device& device, const GptSizes& sizes)
    : kernels_(kernels),
      device_(device),
      sizes_(sizes),
      options_(options_of(sizes)),
      stream_(device.make_stream("bench")),
      model_(make_model(options_, layout_)),
      flops_(model_->flops_per_sample(sizes.vocab) * static_cast<double>(sizes.micro)) {
  samples_ = tensor(DType::i64, {sizes.micro}, 0);
  const LayerContext context{.layout = layout_,
                             .micro = sizes.micro,
                             .vocab = sizes.vocab,
                             .compute = DType::f32,
                             .seed = 1,
                             .sequence = sizes.sequence,
                             .max_rows = sizes.sequence};
  for (int i = 0; i < model_->count(); ++i) {
    layers_.emplace_back().layer = model_->layer(i, context);
    allocate(layers_.back());
  }
  // Upper bound for these operations: packed copies of a product's operands take up to 64 MiB.
  scratch_.resize(std::size_t{96} << 20);
}

TensorView GptStep::tensor(DType dtype, const Shape& shape, double value) {
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * bytes_of(dtype);
  memory_.push_back(device_.allocate(bytes, MemoryKind::device));
  const TensorView view(memory_.back()->data(), dtype, shape);
  device_.fill(view, value, *stream_);
  return view;
}

TensorView GptStep::tokens(std::int64_t shift) {
  const TensorView view = tensor(DType::i32, {sizes_.sequence, sizes_.micro}, 0);
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    view.as<std::int32_t>()[i] = static_cast<std::int32_t>(((i + shift) * 7919) % sizes_.vocab);
  }
  return view;
}

void GptStep::allocate(LayerViews& views) {
  const Layer& layer = *views.layer;
  std::uint32_t seed = 0;
  for (const ParamSpec& spec : layer.params()) {
    const TensorView weight = tensor(DType::f32, spec.local, spec.init.kind == Init::Kind::ones ? 1 : 0);
    if (spec.init.kind == Init::Kind::normal) {
      const PhiloxKey key = philox_key(++seed, RandomPurpose::weights);
      for (std::int64_t i = 0; i < weight.elements(); ++i) {
        const float unit = uniform(philox_at(key, static_cast<std::uint64_t>(i), spec.site, 0)[0]);
        weight.as<float>()[i] = static_cast<float>(spec.init.std) * 3.46f * (unit - 0.5f); // 3.46 = sqrt(12)
      }
    }
    views.params.push_back(weight);
    views.grads.push_back(tensor(DType::f32, spec.local, 0));
  }
  for (const StashSpec& spec : layer.stash()) views.stash.push_back(tensor(spec.dtype, spec.shape, 0));
  for (const TensorSpec& spec : layer.inputs()) {
    const bool hidden = spec.name == "hidden";
    views.in.push_back(hidden ? hidden_ : tokens(spec.name == "targets" ? 1 : 0));
    views.din.push_back(hidden ? dhidden_ : TensorView{});
  }
  for (const TensorSpec& spec : layer.outputs()) {
    const bool loss = spec.name == "loss";
    views.out.push_back(tensor(spec.dtype, spec.shape, 0));
    views.dout.push_back(loss ? TensorView{} : tensor(spec.dtype, spec.shape, 0));
    (loss ? loss_ : hidden_) = views.out.back();
    if (!loss) dhidden_ = views.dout.back();
  }
}

double GptStep::run() {
  const LayerCall call{.device = device_,
                       .kernels = kernels_,
                       .stream = *stream_,
                       .scratch = scratch_,
                       .groups = groups_,
                       .samples = samples_,
                       .loss_gradient = 1.0 / static_cast<double>(sizes_.sequence * sizes_.micro),
                       .rows = {0, sizes_.sequence}};
  for (LayerViews& p : layers_) p.layer->forward(call, p.params, p.in, p.out, p.stash);
  for (auto p = layers_.rbegin(); p != layers_.rend(); ++p) {
    p->layer->backward_input(call, p->params, p->in, p->dout, p->din, p->stash, p->grads);
    p->layer->backward_weight(call, p->in, p->stash, p->grads);
  }
  double loss = 0;
  for (std::int64_t i = 0; i < loss_.elements(); ++i) loss += loss_.as<double>()[i];
  return loss;
}

} // namespace triax::bench
