// SPDX-License-Identifier: Apache-2.0
// Assigns memory to parameters: weights, gradients and the optimizer's state.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "executor/parameters.hpp"

namespace triax::executor {

TensorView Parameters::master_tensor(RankMemory& memory, const Shape& shape) const {
  return offloads_master() ? TensorView(nullptr, types().master, shape) : memory.weights.tensor(types().master, shape);
}

TensorView Parameters::state_tensor(RankMemory& memory, const Shape& shape) const {
  return offloads_ ? TensorView(nullptr, types().master, shape) : memory.optimizer.tensor(types().master, shape);
}

void Parameters::assign_weights(RankMemory& memory) {
  for (TensorView& slot : weight_slots_) slot = weights_of(memory).tensor(types().compute, {weight_slot_elements_});
  for (Parameter& parameter : parameters_) {
    if (parameter.sharded) continue;
    const Shape& local = parameter.spec->local;
    parameter.master = master_tensor(memory, local);
    parameter.working = separate_working() ? memory.working.tensor(types().compute, local) : parameter.master;
  }
  for (LayerParameters& layer : layers_) {
    layer.working.clear();
    layer.gathered.clear();
    layer.unsharded.clear();
    for (std::size_t number = 0; number < layer.buckets.size(); ++number)
      if (layer.buckets[number].sharded) assign_sharded(layer, number, memory);
    if (sharding() == schedule::Sharding::parameters) {
      assign_unsharded(layer);
    } else {
      std::vector<TensorView>& working = layer.working.emplace_back();
      for (const Accumulator& accumulator : layer.accumulators) working.push_back(local(accumulator.parameter).working);
    }
  }
}

/// A layer reads its sharded parameters in the slot of its stage, and the others where they are.
void Parameters::assign_unsharded(LayerParameters& layer) {
  for (const Bucket& bucket : layer.buckets) {
    if (!bucket.sharded || !bucket.unshards) continue;
    UnshardedWeights& out = layer.unsharded.emplace_back();
    out.group = bucket.reduction.group;
    out.part = part_of_weights(layer, bucket);
    for (const TensorView& slot : weight_slots_) out.whole.push_back(whole_weights(bucket, slot));
  }
  for (const TensorView& slot : weight_slots_) {
    std::vector<TensorView>& working = layer.working.emplace_back();
    for (const Accumulator& accumulator : layer.accumulators) {
      const Bucket& bucket = layer.buckets[accumulator.bucket];
      const Shape& shape = local(accumulator.parameter).spec->local;
      working.push_back(bucket.sharded ? view_of(whole_weights(bucket, slot), accumulator, shape)
                                       : local(accumulator.parameter).working);
    }
  }
}

/// A tied parameter is stored with its first layer on this rank.
const TensorView& Parameters::part_of_weights(const LayerParameters& layer, const Bucket& bucket) const {
  const auto number = static_cast<std::size_t>(&bucket - layer.buckets.data());
  const auto accumulator = std::ranges::find(layer.accumulators, number, &Accumulator::bucket);
  const LayerParameters& first = layer_parameters(model_->all()[accumulator->parameter].layer.at(here_));
  const auto stored = std::ranges::find(first.accumulators, accumulator->parameter, &Accumulator::parameter);
  return first.buckets[stored->bucket].weights;
}

TensorView Parameters::whole_weights(const Bucket& bucket, const TensorView& slot) {
  return slot.slice(0, bucket.weights_offset, bucket.weights_offset + bucket.members * bucket.part);
}

/// A parameter in the flat weights or gradients of its bucket. In a dry run they have no data.
TensorView Parameters::view_of(const TensorView& bucket, const Accumulator& accumulator, const Shape& shape) {
  const TensorView flat = bucket.slice(0, accumulator.offset, accumulator.offset + shape.elements());
  return {flat.data(), flat.dtype(), shape};
}

TensorView Parameters::owned_of(const Bucket& bucket, const Accumulator& accumulator, const Parameter& parameter,
                                const TensorView& part) {
  const OwnedPart& owned = parameter.owned;
  const std::int64_t first = owned.count == 0 ? 0 : accumulator.offset + owned.first - bucket.begin;
  return part.slice(0, first, first + owned.count);
}

/// Every member has memory for a whole part, so that all need as much.
void Parameters::assign_sharded(LayerParameters& layer, std::size_t number, RankMemory& memory) {
  const auto is_stored = [&](const Accumulator& accumulator) { // with its first layer on this rank
    return accumulator.bucket == number && model_->all()[accumulator.parameter].layer.at(here_) == layer.number;
  };
  if (std::ranges::none_of(layer.accumulators, is_stored)) return;
  Bucket& bucket = layer.buckets[number];
  GatheredWeights& out = layer.gathered.emplace_back();
  out.group = bucket.reduction.group;
  if (sharding() == schedule::Sharding::parameters) {
    out.part = weights_of(memory).tensor(types().compute, {bucket.part});
  } else {
    out.working = weights_of(memory).tensor(types().compute, {bucket.members * bucket.part});
    out.part = out.working.slice(0, bucket.begin, bucket.begin + bucket.part);
  }
  bucket.weights = out.part;
  out.master = separate_working() ? master_tensor(memory, {bucket.part}) : out.part;
  std::vector<TensorView> states;
  states.reserve(states_);
  for (std::size_t i = 0; i < states_; ++i) states.push_back(state_tensor(memory, {bucket.part}));
  for (const Accumulator& accumulator : layer.accumulators) {
    if (!is_stored(accumulator)) continue;
    Parameter& parameter = local(accumulator.parameter);
    const auto owned = [&](const TensorView& part) { return owned_of(bucket, accumulator, parameter, part); };
    parameter.working =
        parameter.resharded ? owned(out.part) : view_of(out.working, accumulator, parameter.spec->local);
    parameter.master = parameter.holds_part ? owned(out.master) : parameter.working;
    parameter.state.clear();
    for (const TensorView& state : states) parameter.state.push_back(owned(state));
  }
}

void Parameters::assign_memory(RankMemory& memory) {
  assign_weights(memory);
  for (Parameter& parameter : parameters_) {
    if (parameter.sharded) continue;
    parameter.state.clear();
    for (std::size_t i = 0; i < states_; ++i)
      parameter.state.push_back(state_tensor(memory, {stored_elements(*parameter.spec)}));
  }
  if (has_gradients_) assign_gradients(memory);
}

/// Both sides of a tie in one stage read the same copy.
void Parameters::share_weights(std::span<const StageLayers> stages, int slots) {
  std::int64_t parts = 0, whole = 0;
  std::set<std::size_t> stored; // indices of parameters
  for (const StageLayers& stage : stages) {
    std::int64_t elements = 0;
    std::map<std::size_t, std::int64_t> tied; // offset in the slot, by index of the parameter
    for (LayerParameters& layer : layers_) {
      if (layer.number < stage.first || layer.number >= stage.first + stage.count) continue;
      for (std::size_t number = 0; number < layer.buckets.size(); ++number) {
        Bucket& bucket = layer.buckets[number];
        if (!bucket.sharded) continue;
        const std::size_t index = std::ranges::find(layer.accumulators, number, &Accumulator::bucket)->parameter;
        const auto [entry, is_first] = tied.try_emplace(index, elements);
        bucket.weights_offset = entry->second;
        bucket.unshards = is_first;
        if (is_first) elements += bucket.members * bucket.part;
        if (!stored.insert(index).second) continue;
        parts += bucket.part;
        whole += bucket.members * bucket.part;
      }
    }
    weight_slot_elements_ = std::max(weight_slot_elements_, elements);
  }
  weight_slots_.resize(static_cast<std::size_t>(slots));
  saves_weights_ = slots * weight_slot_elements_ + parts < whole;
}

void Parameters::share_accumulators(std::span<const StageAccumulator> stages) {
  std::int64_t own = 0, largest = 0, parts = 0;
  int slots = 0;
  const auto each_bucket = [&](const StageAccumulator& stage, auto visit) {
    for (LayerParameters& layer : layers_)
      if (layer.number >= stage.first && layer.number < stage.end)
        for (Bucket& bucket : layer.buckets)
          if (scatters(bucket)) visit(bucket);
  };
  for (const StageAccumulator& stage : stages) {
    std::int64_t elements = 0;
    each_bucket(stage, [&](Bucket& bucket) {
      bucket.offset = std::exchange(elements, elements + bucket.members * bucket.part);
      parts += bucket.part;
    });
    own += elements;
    largest = std::max(largest, elements);
    slots = std::max(slots, stage.slot + 1);
  }
  if (slots == 0 || slots * largest + parts >= own) return;
  for (const StageAccumulator& stage : stages) each_bucket(stage, [&](Bucket& bucket) { bucket.slot = stage.slot; });
  slot_elements_ = largest;
  slots_.resize(static_cast<std::size_t>(slots));
}

std::size_t Parameters::shared_accumulator_bytes() const {
  std::size_t out = 0;
  for (const TensorView& slot : slots_) out += Arena::aligned(slot.bytes());
  return out;
}

/// The shared accumulators come first: zeroing the others before a step is one fill.
void Parameters::assign_gradients(RankMemory& memory) {
  for (TensorView& slot : slots_) slot = memory.gradients.tensor(types().master, {slot_elements_});
  for (LayerParameters& layer : layers_) assign_accumulators(layer, memory);
  for (Parameter& parameter : parameters_)
    for (std::size_t at = 0; at < parameter.ranks.size(); ++at) {
      if (parameter.ranks[at] == here_) continue;
      const TensorView received =
          memory.gradients.tensor(types().master, parameter.scattered ? Shape{parameter.part} : parameter.spec->local);
      parameter.exchanged[at] = received;
      if (at == 0) parameter.gradient = parameter.scattered ? received.slice(0, 0, parameter.owned.count) : received;
    }
}

/// Gradients that are scattered are padded to equal parts. In shared memory, they do not last until the norm.
void Parameters::assign_bucket(Bucket& bucket, RankMemory& memory) const {
  const std::int64_t padded = bucket.members * bucket.part;
  if (!scatters(bucket)) {
    bucket.gradients = memory.gradients.tensor(types().master, {bucket.elements});
  } else if (bucket.slot < 0) {
    bucket.gradients = memory.gradients.tensor(types().master, {padded});
    bucket.reduced = bucket.gradients.slice(0, bucket.begin, bucket.begin + bucket.part);
  } else {
    const TensorView& slot = slots_[static_cast<std::size_t>(bucket.slot)];
    bucket.gradients = slot.slice(0, bucket.offset, bucket.offset + padded);
    bucket.reduced = memory.gradients.tensor(types().master, {bucket.part});
  }
}

/// The gradients of a bucket are contiguous.
void Parameters::assign_accumulators(LayerParameters& layer, RankMemory& memory) {
  layer.gradients.assign(layer.accumulators.size(), {});
  for (std::size_t number = 0; number < layer.buckets.size(); ++number) {
    Bucket& bucket = layer.buckets[number];
    assign_bucket(bucket, memory);
    for (std::size_t i = 0; i < layer.accumulators.size(); ++i) {
      const Accumulator& accumulator = layer.accumulators[i];
      if (accumulator.bucket != number) continue;
      Parameter& parameter = local(accumulator.parameter);
      layer.gradients[i] = view_of(bucket.gradients, accumulator, parameter.spec->local);
      if (layer.number == parameter.layer) parameter.accumulator = layer.gradients[i];
      const TensorView& all = layer.gradients[i];
      parameter.exchanged[accumulator.number] = parameter.scattered ? bucket.reduced : all;
      if (accumulator.number == 0)
        parameter.gradient = parameter.scattered ? owned_of(bucket, accumulator, parameter, bucket.reduced) : all;
    }
  }
}

} // namespace triax::executor
