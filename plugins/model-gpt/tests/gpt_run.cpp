// SPDX-License-Identifier: Apache-2.0
// Runs a complete model-gpt layer by layer.
#include "gpt_run.hpp"

#include <algorithm>
#include <limits>

#include "support/installation.hpp"
#include "triax/random.hpp"

namespace triax::model_gpt_test {

namespace {

const plugin::Library& library(const char* name, const char* kind) {
  return plugin::load(test::plugin_file(name), kind);
}

Options options_of(const Setting& setting) {
  Options options;
  options.set("layers", setting.layers);
  options.set("hidden", setting.hidden);
  options.set("heads", setting.heads);
  options.set("sequence", setting.sequence);
  options.set("dropout", setting.dropout);
  return options;
}

template <class Set>
void for_each_element(const TensorView& view, Set set) {
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    if (view.dtype() == DType::f64) {
      set(view.as<double>()[i], i);
    } else {
      set(view.as<float>()[i], i);
    }
  }
}

} // namespace

std::int64_t global_element(const ParamSpec& spec, std::int64_t local) {
  const std::int64_t columns = spec.local.rank() > 1 ? spec.local[1] : 1;
  std::int64_t index[2] = {local / columns, local % columns};
  for (const Cut& cut : spec.cuts) {
    index[cut.dim] += cut.begin;
    if (index[cut.dim] >= cut.end) return -1;
  }
  return index[0] * (spec.global.rank() > 1 ? spec.global[1] : 1) + index[1];
}

GptModel::GptModel(const Setting& setting, const Layout& layout, int rank)
    : options_(options_of(setting)),
      layout_(layout),
      context_{options_, null_log(), layout_, rank},
      model_(plugin::create<Model>(library("model-gpt", "model"), context_)) {}

plugin::Instance<KernelSet> reference_kernels() {
  static const Options options;
  static const Layout layout = Layout::ptd(1, 1, 1);
  return plugin::create<KernelSet>(library("kernels-reference", "kernels"), PluginContext{options, null_log(), layout});
}

std::vector<double> values_of(const TensorView& view) {
  std::vector<double> values(static_cast<std::size_t>(view.elements()));
  for_each_element(view, [&](auto& element, std::int64_t i) { values[static_cast<std::size_t>(i)] = element; });
  return values;
}

GptRun::GptRun(const Setting& setting, Device& device, const Groups& groups, const Layout& layout, int rank)
    : setting_(setting),
      layout_(layout),
      rank_(rank),
      device_(device),
      groups_(groups),
      model_(setting, layout, rank),
      kernels_(reference_kernels()),
      stream_(device.make_stream("compute")) {
  kernels_->start(device_);
  const LayerContext context{.layout = layout_,
                             .rank = rank_,
                             .micro = setting.micro,
                             .vocab = setting.vocab,
                             .compute = setting.compute,
                             .seed = 7,
                             .sequence = setting.sequence,
                             .max_rows = setting.sequence};
  for (int index = 0; index < model_->count(); ++index) layers_.push_back(model_->layer(index, context));

  // The memory is laid out twice. The first time, views without data give the scratch and memory sizes.
  Arena counting("count");
  lay_out(counting);
  PlanKernels plan(*kernels_);
  const auto plan_device = make_plan_device(DeviceKind::host);
  const auto plan_stream = plan_device->make_stream("plan");
  const Groups nobody;
  LayerCall planned{*plan_device, plan, *plan_stream, {}, nobody, samples_};
  planned.rows = {0, setting.sequence};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerMemory& m = memory_[i];
    layers_[i]->forward(planned, m.params, m.in, m.out, m.stash);
    layers_[i]->backward_input(planned, m.params, m.in, m.dout, m.din, m.stash, m.grads);
    layers_[i]->backward_weight(planned, m.in, m.stash, m.grads);
  }
  TRIAX_REQUIRE(plan.refusals().empty(), "{}", plan.refusals().front().message);
  scratch_bytes_ = plan.scratch_needed();

  const std::size_t bytes = counting.used() + Arena::aligned(scratch_bytes_);
  arena_ = std::make_unique<Arena>("test", device_.allocate(bytes, MemoryKind::device));
  lay_out(*arena_);
  initialise();
}

void GptRun::lay_out(Arena& arena) {
  const Shape rows{setting_.sequence, setting_.micro};
  tokens_ = arena.tensor(DType::i32, rows);
  targets_ = arena.tensor(DType::i32, rows);
  samples_ = arena.tensor(DType::i64, {setting_.micro});
  scratch_ = arena.tensor(DType::u8, {static_cast<std::int64_t>(scratch_bytes_)});
  memory_.clear();
  parameters_.clear();
  TensorView hidden, dhidden;
  for (const auto& layer : layers_) {
    LayerMemory memory;
    for (const ParamSpec& spec : layer->params()) {
      memory.params.push_back(arena.tensor(setting_.compute, spec.local));
      memory.grads.push_back(arena.tensor(setting_.compute, spec.local));
      parameters_.push_back({text("{}/{}", layer->name(), spec.name), spec, memory.params.back(), memory.grads.back()});
    }
    for (const StashSpec& spec : layer->stash()) memory.stash.push_back(arena.tensor(spec.dtype, spec.shape));
    for (const TensorSpec& spec : layer->inputs()) {
      const bool data = spec.name == "tokens" || spec.name == "targets";
      memory.in.push_back(data ? (spec.name == "tokens" ? tokens_ : targets_) : hidden);
      memory.din.push_back(data ? TensorView{} : dhidden);
    }
    for (const TensorSpec& spec : layer->outputs()) {
      memory.out.push_back(hidden = arena.tensor(spec.dtype, spec.shape));
      memory.dout.push_back(dhidden = spec.name == "loss" ? TensorView{} : arena.tensor(spec.dtype, spec.shape));
    }
    memory_.push_back(std::move(memory));
  }
  loss_ = memory_.back().out[0];
}

// Values depend on the element of the global tensor, so every split has the same values. A tied copy gets the values of
// the first one.
void GptRun::initialise() {
  const PhiloxKey key = philox_key(1, RandomPurpose::test);
  for (Parameter& parameter : parameters_) {
    const bool tied = parameter.name == "head/tokens.weight";
    const std::uint32_t site = tied ? this->parameter("embedding/tokens.weight").spec.site : parameter.spec.site;
    const double centre = parameter.spec.init.kind == Init::Kind::ones ? 1 : 0;
    for_each_element(parameter.value, [&](auto& element, std::int64_t i) {
      const std::int64_t global = global_element(parameter.spec, i);
      const auto e = static_cast<std::uint64_t>(global);
      const double drawn = global < 0 ? 1e3 : uniform(philox_at(key, e, site, 0)[e % 4]) * 2 - 1;
      element = static_cast<std::remove_reference_t<decltype(element)>>(centre + setting_.amplitude * drawn);
    });
    for_each_element(parameter.gradient, [](auto& element, std::int64_t) { element = 0; });
  }
}

Parameter& GptRun::parameter(std::string_view name) {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](auto& p) { return p.name == name; });
  TRIAX_REQUIRE(found != parameters_.end(), "no parameter {}", name);
  return *found;
}

void GptRun::fill_tokens(std::span<const std::int64_t> samples) {
  const PhiloxKey key = philox_key(2, RandomPurpose::test);
  const auto token = [&](std::int64_t sample, std::int64_t position) {
    const PhiloxBlock block =
        philox_at(key, static_cast<std::uint64_t>(position) * 4, 0, static_cast<std::uint32_t>(sample));
    return static_cast<std::int32_t>(block[0] % static_cast<std::uint32_t>(setting_.vocab));
  };
  for (std::int64_t b = 0; b < setting_.micro; ++b) {
    const std::int64_t sample = samples_.as<std::int64_t>()[b] = samples[static_cast<std::size_t>(b)];
    for (std::int64_t s = 0; s < setting_.sequence; ++s) {
      tokens_.as<std::int32_t>()[s * setting_.micro + b] = token(sample, s);
      targets_.as<std::int32_t>()[s * setting_.micro + b] = token(sample, s + 1);
    }
  }
}

LayerCall GptRun::call(bool dropout) {
  return {.device = device_,
          .kernels = *kernels_,
          .stream = *stream_,
          .scratch = {scratch_.as<std::byte>(), scratch_bytes_},
          .groups = groups_,
          .samples = samples_,
          .dropout = dropout,
          .loss_gradient = 1 / static_cast<double>(setting_.tokens()),
          .rows = {0, setting_.sequence}};
}

void GptRun::spoil(const TensorView& view) {
  if (!view.empty() && is_floating(view.dtype()))
    for_each_element(view, [](auto& element, std::int64_t) { element = std::numeric_limits<float>::quiet_NaN(); });
}

template <class Specs>
void GptRun::spoil_lives(const Specs& specs, std::span<const TensorView> views, std::initializer_list<Life> lives) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (std::find(lives.begin(), lives.end(), specs[i].life) != lives.end()) spoil(views[i]);
}

std::vector<double> GptRun::forward(std::span<const std::int64_t> samples, bool dropout) {
  fill_tokens(samples);
  for (const LayerMemory& memory : memory_)
    for (const auto* views : {&memory.out, &memory.dout, &memory.stash})
      for (const TensorView& view : *views) spoil(view);
  const LayerCall call = this->call(dropout);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerMemory& m = memory_[i];
    layers_[i]->forward(call, m.params, m.in, m.out, m.stash);
    spoil_lives(layers_[i]->stash(), m.stash, {Life::forward_only, Life::input_to_weight});
    spoil_lives(layers_[i]->inputs(), m.in, {Life::forward_only});
  }
  stream_->ready();
  return values_of(loss_);
}

double GptRun::loss(std::span<const std::int64_t> samples) {
  double sum = 0;
  for (const double loss : forward(samples)) sum += loss;
  return sum / static_cast<double>(setting_.tokens());
}

void GptRun::backward() {
  const LayerCall call = this->call(true);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const LayerMemory& m = memory_[i];
    layers_[i]->backward_input(call, m.params, m.in, m.dout, m.din, m.stash, m.grads);
    spoil_lives(layers_[i]->stash(), m.stash, {Life::forward_to_input});
    spoil_lives(layers_[i]->inputs(), m.in, {Life::forward_to_input});
    for (const TensorView& view : m.dout) spoil(view);
  }
  for (std::size_t i = layers_.size(); i-- > 0;)
    layers_[i]->backward_weight(call, memory_[i].in, memory_[i].stash, memory_[i].grads);
  stream_->ready();
}

} // namespace triax::model_gpt_test
