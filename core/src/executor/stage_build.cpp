// SPDX-License-Identifier: Apache-2.0
// Builds a stage: connects layers by the names of their boundary tensors, and assigns a location to every tensor.
#include <algorithm>

#include "executor/layer_check.hpp"
#include "executor/model_error.hpp"
#include "executor/stage.hpp"
#include "triax/error.hpp"

namespace triax::executor {

namespace {

using schedule::Pool;

bool from_data(const TensorSpec& spec) {
  return spec.name == "tokens" || spec.name == "targets";
}

std::vector<TensorView> tensors_of(Arena& arena, int count, DType dtype, const Shape& shape) {
  std::vector<TensorView> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int slot = 0; slot < count; ++slot) out.push_back(arena.tensor(dtype, shape));
  return out;
}

std::vector<TensorView> tensors(RankMemory& memory, int count, DType dtype, const Shape& shape) {
  return tensors_of(memory.activations, count, dtype, shape);
}

int count_of(const schedule::Slots& slots, Pool pool) {
  return slots[static_cast<std::size_t>(pool)];
}

/// Whether a tensor of a stash exists in a forward.
bool begins_with_forward(Life life) {
  return life == Life::forward_only || outlives_forward(life);
}

} // namespace

Stage::Stage(int index, int first, std::vector<std::unique_ptr<Layer>> layers, const StageOptions& options)
    : index_(index), first_(first), options_(options) {
  TRIAX_REQUIRE(!layers.empty(), "stage {} has no layers", index);
  for (std::unique_ptr<Layer>& layer : layers) layers_.emplace_back().layer = std::move(layer);
  for (const LayerSlot& held : layers_) check_layer(*held.layer);
  group_layers();
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    LayerSlot& held = layers_[at];
    check_purpose(*held.layer);
    for (const TensorSpec& spec : held.layer->inputs()) {
      held.in.push_back(home_of_input(spec, at));
      held.in.back().row_dim = spec.row_dim;
    }
    if (at > 0) layers_[at - 1].consumer = join(*layers_[at - 1].layer, *layers_[at].layer);
  }
}

void Stage::check_purpose(const Layer& layer) const {
  for (const StashSpec& spec : layer.stash())
    require_of_model(generates() || spec.life != Life::sequence,
                     "{}: \"{}\" is kept from call to call (Life::sequence), which only Purpose::generate has",
                     layer.name(), spec.name);
  for (const TensorSpec& spec : layer.inputs())
    require_of_model(!generates() || spec.name != "targets", "{} reads targets, which Purpose::generate does not have",
                     layer.name());
}

void Stage::list_recomputed(LayerSlot& held) {
  held.cheap = find_extension<CheapRecompute>(*held.layer);
  require_of_model(held.cheap != nullptr, "{} does not have the interface {}", held.layer->name(),
                   CheapRecompute::kExtension);
  const std::span<const int> listed = held.cheap->recomputed_stash();
  held.recomputed_stash.assign(listed.begin(), listed.end());
  const std::string wrong = wrong_recomputed_stash(*held.layer, held.recomputed_stash);
  require_of_model(wrong.empty(), "{}", wrong);
}

void Stage::take_steps(LayerSlot& held, const ChosenSteps& chosen) {
  held.offered = find_extension<RecomputeSteps>(*held.layer);
  require_of_model(held.offered != nullptr, "{} does not have the interface {}", held.layer->name(),
                   RecomputeSteps::kExtension);
  const std::span<const RecomputeStep> steps = held.offered->steps();
  const std::string wrong = wrong_steps(*held.layer, steps);
  require_of_model(wrong.empty(), "{}", wrong);
  for (const int step : chosen.steps)
    TRIAX_REQUIRE(step >= 0 && static_cast<std::size_t>(step) < steps.size(), "{} has {} steps, but {} was chosen",
                  held.layer->name(), steps.size(), step);
  const auto stash = held.layer->stash();
  for (const int index : chosen.dropped)
    TRIAX_REQUIRE(index >= 0 && static_cast<std::size_t>(index) < stash.size() &&
                      outlives_forward(stash[static_cast<std::size_t>(index)].life),
                  "{}: the tensor {} cannot be recomputed", held.layer->name(), index);
  held.steps = chosen.steps;
  held.recomputed_stash = chosen.dropped;
}

const ChosenSteps& Stage::chosen_of(int number) const {
  const auto block = static_cast<std::size_t>(number - std::max(first_, options_.recomputed.begin));
  TRIAX_REQUIRE(block < options_.how.chosen.size(), "stage {} has no choice of steps for its block {}", index_, block);
  return options_.how.chosen[block];
}

void Stage::group_layers() {
  int of_group = 0; // layers
  std::size_t groups = 0;
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    LayerSlot& held = layers_[at];
    const bool recomputed = options_.recomputed.has(first_ + static_cast<int>(at));
    if (recomputed && options_.how.blocks == Recompute::cheap) list_recomputed(held);
    if (recomputed && options_.how.blocks == Recompute::optimal)
      take_steps(held, chosen_of(first_ + static_cast<int>(at)));
    held.recomputes = recomputed && options_.how.blocks == Recompute::full;
    held.begins_group = held.recomputes && of_group == 0;
    if (held.begins_group) held.group = groups++;
    of_group = held.recomputes ? of_group + 1 : 0;
    held.ends_group = held.recomputes && (of_group == options_.how.group || at + 1 == layers_.size() ||
                                          !options_.recomputed.has(first_ + static_cast<int>(at) + 1));
    if (held.ends_group) of_group = 0;
  }
}

bool Stage::is_kept_apart(const TensorSpec& spec, std::size_t at) const {
  return layers_[at].begins_group && (options_.how.on_host ? is_hosted(spec) : parts_of(spec) > 1);
}

int Stage::parts_of(const TensorSpec& spec) const {
  return is_partitioned(spec) ? options_.how.parts : 1;
}

Stage::Location Stage::home_of_input(const TensorSpec& spec, std::size_t at) const {
  using enum Location::Where;
  const bool first_of_stage = at == 0, recomputes = layers_[at].recomputes;
  if (spec.name == "tokens") return {.where = tokens};
  if (spec.name == "targets") return {.where = targets};
  if (is_kept_apart(spec, at)) return {.where = part, .pool = Pool::stash_i};
  const bool read_again = recomputes && spec.life == Life::forward_only; // by the repeated forward
  const bool read_once = generates() && begins_with_forward(spec.life);
  const bool is_repeated = recomputes && !layers_[at].begins_group && spec.life != Life::forward_to_weight;
  if (is_repeated && begins_with_forward(spec.life)) return {.where = shared};
  switch (read_again ? Life::forward_to_input : read_once ? Life::forward_only : spec.life) {
    case Life::forward_only:
      return first_of_stage ? Location{.where = pool, .pool = Pool::input_f} : Location{.where = shared};
    case Life::forward_to_input:
      return {.where = pool, .pool = first_of_stage ? Pool::input_i : Pool::stash_i};
    case Life::forward_to_weight:
      return {.where = pool, .pool = first_of_stage ? Pool::input_w : Pool::stash_w};
    case Life::input_only:
    case Life::input_to_weight:
      break;
    case Life::sequence:
      throw ModelError(text("the input \"{}\" cannot be kept from call to call (Life::sequence)", spec.name));
  }
  throw ModelError(
      text("the input \"{}\" cannot begin with the input gradient: it arrives with the forward", spec.name));
}

std::vector<int> Stage::join(const Layer& producer, const Layer& consumer) {
  const auto inputs = consumer.inputs();
  std::vector<bool> found(inputs.size(), false);
  std::vector<int> out;
  for (const TensorSpec& output : producer.outputs()) {
    const auto input = std::ranges::find(inputs, output.name, &TensorSpec::name);
    require_of_model(input != inputs.end(), "{} makes \"{}\", which {} does not take", producer.name(), output.name,
                     consumer.name());
    require_of_model(input->shape == output.shape && input->dtype == output.dtype,
                     "{} makes \"{}\" as {}{}, but {} takes it as {}{}", producer.name(), output.name,
                     name_of(output.dtype), output.shape, consumer.name(), name_of(input->dtype), input->shape);
    require_of_model(input->row_dim == output.row_dim, "\"{}\" has its rows in dimension {} for {}, but in {} for {}",
                     output.name, output.row_dim, producer.name(), input->row_dim, consumer.name());
    require_of_model(input->sharded == output.sharded, "of \"{}\", one of {} and {} has parts (TensorSpec::sharded)",
                     output.name, producer.name(), consumer.name());
    out.push_back(static_cast<int>(input - inputs.begin()));
    found[static_cast<std::size_t>(input - inputs.begin())] = true;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    require_of_model(found[i] || from_data(inputs[i]), "{} takes \"{}\", which {} does not make", consumer.name(),
                     inputs[i].name, producer.name());
  return out;
}

void Stage::begin_with_data() {
  for (const TensorSpec& spec : first_layer().inputs())
    require_of_model(from_data(spec),
                     "{} is the first layer and takes \"{}\": only tokens and targets come from the data",
                     first_layer().name(), spec.name);
}

void Stage::follow(Stage& before) {
  before_ = &before;
  before.after_ = this;
  arriving_ = before.layers_.back().consumer = join(before.last_layer(), first_layer());
}

void Stage::receive_from(const Layer& producer) {
  receives_ = true;
  arriving_ = join(producer, first_layer());
}

void Stage::send_to(const Layer& consumer) {
  sends_ = true;
  layers_.back().consumer = join(last_layer(), consumer);
}

void Stage::end_with_result() {
  const Layer& last = last_layer();
  layers_.back().consumer = {-1};
  if (generates()) {
    require_of_model(last.outputs().size() == 1 && last.outputs()[0].name == "logits" && last.outputs()[0].row_dim == 0,
                     "{} is the last layer: its one output must be \"logits\" [rows, b, V]", last.name());
    return;
  }
  require_of_model(
      last.outputs().size() == 1 && last.outputs()[0].name == "loss" && last.outputs()[0].dtype == DType::f64,
      "{} is the last layer: its one output must be \"loss\", f64", last.name());
}

void Stage::assign_memory(RankMemory& memory, const schedule::Slots& slots, const Parameters& parameters) {
  memory.hosts_inputs |= options_.how.on_host;
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    LayerSlot& held = layers_[at];
    held.working = parameters.working_of(first_ + static_cast<int>(at));
    held.accumulators = parameters.gradients_of(first_ + static_cast<int>(at));
    assign_inputs(at, memory, slots);
    if (held.begins_group) assign_group(at, memory, slots);
    if (!held.recomputes) assign_stash(held, memory, slots);
    for (std::vector<TensorView>* views : {&call_views_.in, &call_views_.din}) views->reserve(held.in.size());
    for (std::vector<TensorView>* views : {&call_views_.out, &call_views_.dout}) views->reserve(held.consumer.size());
    call_views_.stash.reserve(held.layer->stash().size());
  }
  assign_boundaries(memory, slots);
}

void Stage::assign_boundaries(RankMemory& memory, const schedule::Slots& slots) {
  for (Slotted* of : {&output_gradients_, &sent_outputs_, &sent_gradients_}) of->clear();
  call_views_.boundary.reserve(std::max(arriving_.size(), last_layer().outputs().size()));
  if (after_ || sends_)
    for (const TensorSpec& spec : last_layer().outputs())
      output_gradients_.push_back(tensors(memory, count_of(slots, Pool::gradient), spec.dtype, spec.shape));
  if (sends_)
    for (const TensorSpec& spec : last_layer().outputs())
      sent_outputs_.push_back(tensors(memory, count_of(slots, Pool::output), spec.dtype, spec.shape));
  if (receives_)
    for (const int input : arriving_) {
      const TensorSpec& spec = first_layer().inputs()[static_cast<std::size_t>(input)];
      sent_gradients_.push_back(tensors(memory, count_of(slots, Pool::input_gradient), spec.dtype, spec.shape));
    }
}

void Stage::assign_inputs(std::size_t at, RankMemory& memory, const schedule::Slots& slots) {
  LayerSlot& held = layers_[at];
  ReusedBlock& between = memory.between[at % 2];
  const auto inputs = held.layer->inputs();
  between.restart();
  for (auto* const buffers : {&memory.leaving, &memory.arriving}) // of the next group
    for (ReusedBlock& buffer : *buffers) buffer.restart();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Location& home = held.in[i];
    if (home.where == Location::Where::pool)
      home.slots = tensors(memory, count_of(slots, home.pool), inputs[i].dtype, inputs[i].shape);
    const bool is_part = home.where == Location::Where::part, arrives = is_part && at == 0;
    if (is_part) assign_part(held, i, memory, slots);
    if (arrives) home.arrived = tensors(memory, count_of(slots, Pool::input_f), inputs[i].dtype, inputs[i].shape);
    if (home.where == Location::Where::shared || (is_part && !arrives))
      home.shared = between.tensor(inputs[i].dtype, inputs[i].shape);
  }
  held.input_gradients.clear();
  if (generates()) return;
  // While gradients exist, only recomputed groups run forwards, and their inputs have slots or are in memory.transient.
  between.restart();
  for (const TensorSpec& spec : inputs)
    held.input_gradients.push_back(at == 0 || from_data(spec) ? TensorView{} : between.tensor(spec.dtype, spec.shape));
}

/// On the host, a part has a slot there, and buffers of the device.
void Stage::assign_part(LayerSlot& held, std::size_t input, RankMemory& memory, const schedule::Slots& slots) const {
  const TensorSpec& spec = held.layer->inputs()[input];
  Location& home = held.in[input];
  const int parts = parts_of(spec), count = count_of(slots, home.pool);
  require_of_model(spec.shape.elements() % parts == 0,
                   "{}: \"{}\" has {} elements, which is not divisible by {} tensor ranks", held.layer->name(),
                   spec.name, spec.shape.elements(), parts);
  const Shape kept{spec.shape.elements() / parts};
  home.slots = tensors_of(options_.how.on_host ? memory.hosted_inputs : memory.activations, count, spec.dtype, kept);
  for (std::size_t buffer = 0; options_.how.on_host && buffer < kHostCopyBuffers; ++buffer) {
    home.leaving[buffer] = memory.leaving[buffer].tensor(spec.dtype, kept);
    home.arriving[buffer] = memory.arriving[buffer].tensor(spec.dtype, kept);
  }
}

/// Inputs inside the group, gathered ones, and tensors that a backward reads from its forward, exist at once in B or I.
/// The others exist in the call of one layer.
void Stage::assign_group(std::size_t first, RankMemory& memory, const schedule::Slots& slots) {
  ReusedBlock& block = memory.transient;
  block.restart();
  std::size_t last = first;
  while (!layers_[last].ends_group) ++last;
  for (std::size_t at = first; at <= last; ++at) {
    LayerSlot& held = layers_[at];
    held.stash.assign(held.layer->stash().size(), {});
    assign_recomputed(held, true, memory, slots);
    for (std::size_t i = 0; i < held.in.size(); ++i)
      if (const TensorSpec& spec = held.layer->inputs()[i];
          held.in[i].where == Location::Where::part || (at > first && held.in[i].where == Location::Where::shared))
        held.in[i].repeated = block.tensor(spec.dtype, spec.shape);
  }
  const std::size_t lasting = block.used();
  for (std::size_t at = first; at <= last; ++at) {
    block.restart_after(lasting);
    assign_recomputed(layers_[at], false, memory, slots);
  }
}

Stage::Location Stage::recomputed_location(const StashSpec& spec, RankMemory& memory, const schedule::Slots& slots) {
  Location out;
  out.shared = memory.transient.tensor(spec.dtype, spec.shape);
  out.recomputed = spec.life != Life::input_to_weight;
  out.input_only = spec.life == Life::input_only;
  if (spec.life != Life::forward_to_weight && spec.life != Life::input_to_weight) return out;
  out.where = Location::Where::pool;
  out.pool = Pool::stash_iw;
  out.slots = tensors(memory, count_of(slots, out.pool), spec.dtype, spec.shape);
  return out;
}

/// The tensors that a backward reads from its forward (`lasting`), or the others.
void Stage::assign_recomputed(LayerSlot& held, bool lasting, RankMemory& memory, const schedule::Slots& slots) {
  for (std::size_t i = 0; i < held.stash.size(); ++i) {
    const StashSpec& spec = held.layer->stash()[i];
    if (lasting == outlives_forward(spec.life)) held.stash[i] = recomputed_location(spec, memory, slots);
  }
}

/// The cache has no pool: it outlives the program, which runs once for each call.
void Stage::assign_generating_stash(LayerSlot& held, RankMemory& memory) const {
  memory.transient.restart();
  for (const StashSpec& spec : held.layer->stash()) {
    Location& home = held.stash.emplace_back();
    if (spec.life == Life::sequence) {
      home.where = Location::Where::sequence;
      for (int microbatch = 0; microbatch < options_.microbatches; ++microbatch)
        home.slots.push_back(memory.cache.tensor(spec.dtype, spec.shape));
    } else if (begins_with_forward(spec.life)) {
      home.shared = memory.transient.tensor(spec.dtype, spec.shape);
      home.row_dim = spec.row_dim;
    }
  }
}

void Stage::assign_stash(LayerSlot& held, RankMemory& memory, const schedule::Slots& slots) {
  held.stash.clear();
  if (generates()) return assign_generating_stash(held, memory);
  held.stash.resize(held.layer->stash().size());
  memory.transient.restart();
  for (const int index : held.recomputed_stash) {
    const auto i = static_cast<std::size_t>(index);
    held.stash[i] = recomputed_location(held.layer->stash()[i], memory, slots);
  }
  const std::size_t recomputed = memory.transient.used();
  const auto assign = [&](Life life, Location::Where where, Pool pool, bool shared) {
    for (std::size_t i = 0; i < held.stash.size(); ++i) {
      const StashSpec& spec = held.layer->stash()[i];
      if (spec.life != life || held.stash[i].recomputed) continue;
      const int count = where == Location::Where::pool ? count_of(slots, pool) : 0;
      held.stash[i] = {.where = where, .pool = pool, .slots = tensors(memory, count, spec.dtype, spec.shape)};
      if (shared) held.stash[i].shared = memory.transient.tensor(spec.dtype, spec.shape);
      held.stash[i].input_only = life == Life::input_only;
    }
  };
  assign(Life::forward_only, Location::Where::shared, {}, true);
  assign(Life::forward_to_input, Location::Where::pool, Pool::stash_i, false);
  assign(Life::forward_to_weight, Location::Where::pool, Pool::stash_w, false);
  memory.transient.restart_after(recomputed); // all of these exist in a whole backward
  assign(Life::input_only, Location::Where::shared, {}, true);
  assign(Life::input_to_weight, Location::Where::pool, Pool::stash_iw, true);
}

} // namespace triax::executor
