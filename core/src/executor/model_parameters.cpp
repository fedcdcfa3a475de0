// SPDX-License-Identifier: Apache-2.0
#include "executor/model_parameters.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "executor/model_error.hpp"

namespace triax::executor {

namespace {

/// The tie whose second parameter is this one, or null.
const Tie* tie_of(std::span<const Tie> ties, int number, std::string_view param) {
  const auto found =
      std::ranges::find_if(ties, [&](const Tie& tie) { return tie.layer_b == number && tie.param_b == param; });
  return found == ties.end() ? nullptr : &*found;
}

bool is_tied(std::span<const Tie> ties, int number, std::string_view param) {
  return std::ranges::any_of(ties, [&](const Tie& tie) {
    return (tie.layer_a == number && tie.param_a == param) || (tie.layer_b == number && tie.param_b == param);
  });
}

bool is_padded(const ParamSpec& spec, const Cut& cut) {
  return spec.local[cut.dim] > cut.end - cut.begin;
}

void check_distinct(const ParamSpec& spec) {
  for (std::size_t i = 0; i < spec.cuts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Cut &cut = spec.cuts[i], &before = spec.cuts[j];
      require_of_model(cut.axis != before.axis, "{} is sharded twice over axis {}", spec.name, cut.axis);
      require_of_model(cut.dim != before.dim, "{} is sharded twice along dimension {}", spec.name, cut.dim);
    }
}

void check_cut(const ParamSpec& spec, const Cut& cut, const Layout& layout) {
  require_of_model(cut.dim >= 0 && cut.dim < spec.global.rank() && spec.local.rank() == spec.global.rank(),
                   "{} is {}, stored as {}, but is sharded along dimension {}", spec.name, spec.global, spec.local,
                   cut.dim);
  const std::int64_t whole = spec.global[cut.dim], rows = cut.end - cut.begin;
  const bool is_within = rows == 0 || (rows > 0 && cut.begin >= 0 && cut.end <= whole);
  require_of_model(is_within && rows <= spec.local[cut.dim], "{} is {}, stored as {}: the range [{}, {}) does not fit",
                   spec.name, spec.global, spec.local, cut.begin, cut.end);
  require_of_model(layout.size(cut.axis) > 1 || rows == whole, "{} is sharded over axis {}, which has one rank",
                   spec.name, cut.axis);
}

void check_axes(const ParamSpec& spec, const Layout& layout) {
  for (const Axis& axis : layout.axes()) {
    const bool cuts = std::ranges::find(spec.cuts, axis.name, &Cut::axis) != spec.cuts.end();
    const bool partial = std::ranges::find(spec.partial, axis.name) != spec.partial.end();
    require_of_model(!cuts || axis.divides != Divides::layers, "{} is sharded over axis {}, which divides layers",
                     spec.name, axis.name);
    require_of_model(!partial || axis.divides == Divides::tensors,
                     "{} has partial gradients over axis {}, which does not divide tensors", spec.name, axis.name);
    require_of_model(!partial || !cuts, "{} is sharded over axis {} and has partial gradients over it", spec.name,
                     axis.name);
  }
}

/// Two tied parameters: the rank of each draws and updates the weights by its own description.
void check_same_values(const ModelParameters::ModelParameter& first, const ParamSpec& spec,
                       const ModelParameters::NumberedLayer& of) {
  const Init &a = first.spec->init, &b = spec.init;
  const std::string both = text("{} and {} of layer {} (pipeline ranks {} and {}) are tied, but", first.name, spec.name,
                                of.number, first.ranks.front(), of.rank);
  require_of_model(first.spec->global == spec.global, "{} are {} and {}", both, first.spec->global, spec.global);
  require_of_model(a.kind == b.kind && (a.kind != Init::Kind::normal || a.std == b.std),
                   "{} have different initial values", both);
  require_of_model(first.spec->decay == spec.decay, "{} weight decay applies to one of them only", both);
}

} // namespace

void check_spec(const ParamSpec& spec, const Layout& layout) {
  check_distinct(spec);
  for (const Cut& cut : spec.cuts) check_cut(spec, cut, layout);
  check_axes(spec, layout);
}

TensorView without_padding(const TensorView& view, const ParamSpec& spec) {
  TensorView out = view;
  for (const Cut& cut : spec.cuts) {
    if (!is_padded(spec, cut)) continue;
    require_of_model(cut.dim == 0, "{} is padded along dimension {}: padding must be the last rows", spec.name,
                     cut.dim);
    out = view.slice(0, 0, cut.end - cut.begin);
  }
  return out;
}

std::int64_t stored_elements(const ParamSpec& spec) {
  return without_padding({nullptr, DType::f32, spec.local}, spec).elements();
}

std::vector<std::string> reduction_axes(const ParamSpec& spec, const Layout& layout) {
  std::vector<std::string> out;
  for (const Axis& axis : layout.axes()) {
    const bool cuts = std::ranges::find(spec.cuts, axis.name, &Cut::axis) != spec.cuts.end();
    const bool partial = std::ranges::find(spec.partial, axis.name) != spec.partial.end();
    const bool differs = axis.divides == Divides::samples || axis.divides == Divides::positions;
    if (axis.size > 1 && (partial || (differs && !cuts))) out.push_back(axis.name);
  }
  return out;
}

ModelParameters::ModelParameters(std::span<const NumberedLayer> layers, int rank, const Layout& layout,
                                 std::span<const Tie> ties, const MemoryTypes& types, schedule::Sharding sharding)
    : types_(types), sharding_(sharding) {
  for (const Tie& tie : ties)
    require_of_model(tie.layer_a < tie.layer_b, "a tie of layer {} and layer {}: the first must come before the second",
                     tie.layer_a, tie.layer_b);
  layers_.reserve(layers.size());
  for (const NumberedLayer& numbered : layers) add(numbered, layout, ties);
  check_names();
  for (const Tie& tie : ties) check_tied(tie);
  for (LayerParameters& layer : layers_) {
    divide_buckets(layer, rank, layout);
    assign_owned_parts(layer);
  }
  for (ModelParameter& shared : parameters_)
    for (const int holder : shared.ranks)
      if (shared.index.try_emplace(holder, counts_[holder]).second) ++counts_[holder];
  for (const ModelParameter& shared : parameters_)
    global_.push_back(
        {shared.name, shared.spec, shared.ranks.front(), shared.index.at(shared.ranks.front()), shared.reduction});
}

ModelParameters::Accumulator ModelParameters::accumulator_of(const NumberedLayer& numbered, const ParamSpec& spec,
                                                             const Tie* tie) const {
  if (!tie) return {.parameter = parameters_.size()};
  const LayerParameters& first = layer_parameters(tie->layer_a);
  const auto at = std::ranges::find(first.specs, tie->param_a, [](const ParamSpec* listed) { return listed->name; });
  require_of_model(at != first.specs.end(), "layer {} has no parameter \"{}\" to tie to", tie->layer_a, tie->param_a);
  const std::size_t index = first.accumulators[static_cast<std::size_t>(at - first.specs.begin())].parameter;
  const ModelParameter& shared = parameters_[index];
  require_of_model(shared.spec->local == spec.local, "{} is {} and cannot be tied to {} of layer {}, which is {}",
                   shared.name, shared.spec->local, spec.name, numbered.number, spec.local);
  require_of_model(shared.spec->cuts == spec.cuts, "{} and {} of layer {} are tied, but are sharded differently",
                   shared.name, spec.name, numbered.number);
  require_of_model(shared.spec->partial == spec.partial,
                   "{} and {} of layer {} are tied, but only one of their gradients is "
                   "partial",
                   shared.name, spec.name, numbered.number);
  check_same_values(shared, spec, numbered);
  return {.parameter = index, .number = shared.ranks.size()};
}

void ModelParameters::add(const NumberedLayer& numbered, const Layout& layout, std::span<const Tie> ties) {
  LayerParameters layer{.number = numbered.number, .rank = numbered.rank};
  for (const ParamSpec& spec : numbered.layer->params()) {
    check_spec(spec, layout);
    Accumulator accumulator = accumulator_of(numbered, spec, tie_of(ties, numbered.number, spec.name));
    if (accumulator.parameter == parameters_.size())
      parameters_.push_back(
          {text("{}/{}", numbered.layer->name(), spec.name), &spec, add_reduction(reduction_axes(spec, layout))});
    ModelParameter& parameter = parameters_[accumulator.parameter];
    parameter.ranks.push_back(numbered.rank);
    parameter.layer.try_emplace(numbered.rank, numbered.number);
    put_into_bucket(layer, accumulator, spec, is_tied(ties, numbered.number, spec.name));
    layer.specs.push_back(&spec);
    layer.accumulators.push_back(accumulator);
  }
  layers_.push_back(std::move(layer));
}

/// Checkpoints find parameters by their names.
void ModelParameters::check_names() const {
  std::set<std::string_view> names;
  for (const ModelParameter& parameter : parameters_)
    require_of_model(names.insert(parameter.name).second, "two parameters of the model have the name \"{}\"",
                     parameter.name);
}

void ModelParameters::check_tied(const Tie& tie) const {
  const std::vector<const ParamSpec*>& specs = layer_parameters(tie.layer_b).specs;
  const auto has_name = [&tie](const ParamSpec* spec) { return spec->name == tie.param_b; };
  require_of_model(std::ranges::any_of(specs, has_name), "layer {} has no parameter \"{}\" to tie", tie.layer_b,
                   tie.param_b);
}

std::size_t ModelParameters::add_reduction(std::vector<std::string> axes) {
  const auto found = std::ranges::find(reductions_, axes, &Reduction::axes);
  const auto index = static_cast<std::size_t>(found - reductions_.begin());
  if (found == reductions_.end()) {
    std::string group = Layout::product_name(axes);
    reductions_.push_back({std::move(axes), std::move(group)});
  }
  return index;
}

void ModelParameters::put_into_bucket(LayerParameters& layer, Accumulator& accumulator, const ParamSpec& spec,
                                      bool tied) const {
  const Reduction& reduction = reductions_[parameters_[accumulator.parameter].reduction];
  const auto fits = [&](const Bucket& bucket) {
    return !tied && !bucket.tied && bucket.reduction.group == reduction.group;
  };
  auto bucket = std::ranges::find_if(layer.buckets, fits);
  if (bucket == layer.buckets.end()) {
    layer.buckets.push_back({.reduction = reduction, .gradients = {}, .tied = tied});
    bucket = std::prev(layer.buckets.end());
  }
  const std::int64_t aligned = aligned_elements(bucket->elements);
  accumulator.bucket = static_cast<std::size_t>(bucket - layer.buckets.begin());
  accumulator.offset = aligned;
  bucket->elements = aligned + spec.local.elements();
}

std::int64_t ModelParameters::aligned_elements(std::int64_t elements) const {
  const std::size_t bytes = std::min(bytes_of(types_.master), bytes_of(types_.compute));
  return static_cast<std::int64_t>(Arena::aligned(static_cast<std::size_t>(elements) * bytes) / bytes);
}

void ModelParameters::divide_buckets(LayerParameters& layer, int rank, const Layout& layout) {
  const std::vector<std::string> samples = layout.axes_dividing({Divides::samples});
  for (Bucket& bucket : layer.buckets) {
    const std::vector<std::string>& axes = bucket.reduction.axes;
    for (const std::string& axis : axes) bucket.members *= layout.size(axis);
    bucket.part = aligned_elements((bucket.elements + bucket.members - 1) / bucket.members);
    bucket.begin = bucket.part * layout.group_rank(rank, axes);
    bucket.sharded = sharding_ != schedule::Sharding::none && std::ranges::find_first_of(axes, samples) != axes.end();
  }
}

/// All layers of a tied parameter give it the same shard, because it is alone in their buckets.
void ModelParameters::assign_owned_parts(const LayerParameters& layer) {
  for (const Accumulator& accumulator : layer.accumulators) {
    ModelParameter& parameter = parameters_[accumulator.parameter];
    const Bucket& bucket = layer.buckets[accumulator.bucket];
    const std::int64_t elements = stored_elements(*parameter.spec),
                       from = std::clamp<std::int64_t>(bucket.begin - accumulator.offset, 0, elements),
                       to = std::clamp<std::int64_t>(bucket.begin + bucket.part - accumulator.offset, 0, elements);
    parameter.owned = {from == to ? 0 : from, to - from};
    parameter.sharded = bucket.sharded;
    parameter.part = bucket.part;
    parameter.members = bucket.members;
  }
}

std::size_t ModelParameters::count_on(int rank) const {
  const auto found = counts_.find(rank);
  return found == counts_.end() ? 0 : found->second;
}

std::size_t ModelParameters::most_on_a_rank() const {
  std::size_t most = 0;
  for (const auto& [rank, count] : counts_) most = std::max(most, count);
  return most;
}

const ModelParameters::LayerParameters& ModelParameters::layer_parameters(int number) const {
  const auto found = std::ranges::find(layers_, number, &LayerParameters::number);
  require_of_model(found != layers_.end(), "there is no layer {}", number);
  return *found;
}

} // namespace triax::executor
