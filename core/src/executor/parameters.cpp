// SPDX-License-Identifier: Apache-2.0
// Builds the list of parameters. parameter_memory.cpp assigns memory to them.
#include "executor/parameters.hpp"

#include <algorithm>
#include <utility>

#include "triax/error.hpp"

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
      TRIAX_REQUIRE(cut.axis != before.axis, "{} is cut twice by axis {}", spec.name, cut.axis);
      TRIAX_REQUIRE(cut.dim != before.dim, "{} is cut twice along dimension {}", spec.name, cut.dim);
    }
}

void check_cut(const ParamSpec& spec, const Cut& cut, const Layout& layout) {
  TRIAX_REQUIRE(cut.dim >= 0 && cut.dim < spec.global.rank() && spec.local.rank() == spec.global.rank(),
                "{} is {}, stored as {}, but is cut along dimension {}", spec.name, spec.global, spec.local, cut.dim);
  const std::int64_t whole = spec.global[cut.dim], rows = cut.end - cut.begin;
  const bool is_within = rows == 0 || (rows > 0 && cut.begin >= 0 && cut.end <= whole);
  TRIAX_REQUIRE(is_within && rows <= spec.local[cut.dim], "{} is {}, stored as {}: the cut [{}, {}) does not fit",
                spec.name, spec.global, spec.local, cut.begin, cut.end);
  TRIAX_REQUIRE(layout.size(cut.axis) > 1 || rows == whole, "{} is cut by axis {}, which has one rank", spec.name,
                cut.axis);
}

void check_axes(const ParamSpec& spec, const Layout& layout) {
  for (const Axis& axis : layout.axes()) {
    const bool cuts = std::ranges::find(spec.cuts, axis.name, &Cut::axis) != spec.cuts.end();
    const bool partial = std::ranges::find(spec.partial, axis.name) != spec.partial.end();
    TRIAX_REQUIRE(!cuts || axis.divides != Divides::layers, "{} is cut by axis {}, which divides layers", spec.name,
                  axis.name);
    TRIAX_REQUIRE(!partial || axis.divides == Divides::tensors,
                  "{} has partial gradients over axis {}, which does not divide tensors", spec.name, axis.name);
    TRIAX_REQUIRE(!partial || !cuts, "{} is cut by axis {} and has partial gradients over it", spec.name, axis.name);
  }
}

void check_spec(const ParamSpec& spec, const Layout& layout) {
  check_distinct(spec);
  for (const Cut& cut : spec.cuts) check_cut(spec, cut, layout);
  check_axes(spec, layout);
}

} // namespace

TensorView without_padding(const TensorView& view, const ParamSpec& spec) {
  TensorView out = view;
  for (const Cut& cut : spec.cuts) {
    if (!is_padded(spec, cut)) continue;
    TRIAX_REQUIRE(cut.dim == 0, "{} is padded along dimension {}: padding must be the last rows", spec.name, cut.dim);
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

Parameters::Parameters(std::span<const NumberedLayer> layers, int rank, int here, const Layout& layout,
                       std::span<const Tie> ties, const MemoryTypes& types, std::size_t states,
                       schedule::Sharding sharding)
    : here_(here), types_(types), states_(states), sharding_(sharding) {
  for (const Tie& tie : ties)
    TRIAX_REQUIRE(tie.layer_a < tie.layer_b, "a tie of layer {} and layer {}: the first must come before the second",
                  tie.layer_a, tie.layer_b);
  for (const NumberedLayer& numbered : layers) add(numbered, layout, ties);
  for (OfLayer& of : layers_) {
    divide_buckets(of, rank, layout);
    assign_owned_parts(of);
  }
  for (Family& family : families_)
    for (const int holder : family.ranks)
      if (family.index.try_emplace(holder, counts_[holder]).second) ++counts_[holder];
  parameters_.resize(counts_[here_]);
  for (std::size_t family = 0; family < families_.size(); ++family) {
    const Family& of = families_[family];
    global_.push_back({of.name, of.spec, of.ranks.front(), of.index.at(of.ranks.front()), of.reduction});
    if (!of.index.contains(here_)) continue;
    Parameter& parameter = local(family);
    parameter.name = of.name;
    parameter.spec = of.spec;
    parameter.ranks = of.ranks;
    parameter.exchanged.resize(of.ranks.size());
    parameter.reduction = of.reduction;
    parameter.global = family;
    parameter.layer = of.layer.at(here_);
    parameter.owned = of.owned;
    parameter.sharded = of.sharded;
    parameter.resharded = of.sharded && sharding_ == schedule::Sharding::parameters;
    parameter.holds_part = parameter.resharded || (of.sharded && separate_working());
    parameter.scattered = of.sharded && schedule::scatters_gradients(sharding_);
    parameter.part = of.part;
    parameter.members = of.members;
  }
}

Parameters::Side Parameters::side_of(const NumberedLayer& numbered, const ParamSpec& spec, const Tie* tie) const {
  if (!tie) return {.family = families_.size()};
  const OfLayer& first = of_layer(tie->layer_a);
  const auto at = std::ranges::find(first.specs, tie->param_a, [](const ParamSpec* of) { return of->name; });
  TRIAX_REQUIRE(at != first.specs.end(), "layer {} has no parameter \"{}\" to tie to", tie->layer_a, tie->param_a);
  const std::size_t family = first.sides[static_cast<std::size_t>(at - first.specs.begin())].family;
  const Family& shared = families_[family];
  TRIAX_REQUIRE(shared.spec->local == spec.local, "{} is {} and cannot be tied to {} of layer {}, which is {}",
                shared.name, shared.spec->local, spec.name, numbered.number, spec.local);
  TRIAX_REQUIRE(shared.spec->cuts == spec.cuts, "{} and {} of layer {} are tied and have different cuts", shared.name,
                spec.name, numbered.number);
  TRIAX_REQUIRE(shared.spec->partial == spec.partial,
                "{} and {} of layer {} are tied, but only one of their gradients is "
                "partial",
                shared.name, spec.name, numbered.number);
  return {.family = family, .accumulator = shared.ranks.size()};
}

void Parameters::add(const NumberedLayer& numbered, const Layout& layout, std::span<const Tie> ties) {
  OfLayer of{.number = numbered.number, .rank = numbered.rank};
  for (const ParamSpec& spec : numbered.layer->params()) {
    check_spec(spec, layout);
    Side side = side_of(numbered, spec, tie_of(ties, numbered.number, spec.name));
    if (side.family == families_.size())
      families_.push_back(
          {text("{}/{}", numbered.layer->name(), spec.name), &spec, add_reduction(reduction_axes(spec, layout))});
    Family& family = families_[side.family];
    family.ranks.push_back(numbered.rank);
    family.layer.try_emplace(numbered.rank, numbered.number);
    put_into_bucket(of, side, spec, is_tied(ties, numbered.number, spec.name));
    of.specs.push_back(&spec);
    of.sides.push_back(side);
  }
  layers_.push_back(std::move(of));
}

std::size_t Parameters::add_reduction(std::vector<std::string> axes) {
  const auto found = std::ranges::find(reductions_, axes, &Reduction::axes);
  const auto index = static_cast<std::size_t>(found - reductions_.begin());
  if (found == reductions_.end()) {
    std::string group = Layout::product_name(axes);
    reductions_.push_back({std::move(axes), std::move(group)});
  }
  return index;
}

void Parameters::put_into_bucket(OfLayer& of, Side& side, const ParamSpec& spec, bool tied) const {
  const Reduction& reduction = reductions_[families_[side.family].reduction];
  const auto fits = [&](const Bucket& bucket) {
    return !tied && !bucket.tied && bucket.reduction.group == reduction.group;
  };
  auto bucket = std::ranges::find_if(of.buckets, fits);
  if (bucket == of.buckets.end()) {
    of.buckets.push_back({.reduction = reduction, .gradients = {}, .tied = tied});
    bucket = std::prev(of.buckets.end());
  }
  const std::int64_t aligned = aligned_elements(bucket->elements);
  side.bucket = static_cast<std::size_t>(bucket - of.buckets.begin());
  side.offset = aligned;
  bucket->elements = aligned + spec.local.elements();
}

std::int64_t Parameters::aligned_elements(std::int64_t elements) const {
  const std::size_t bytes = std::min(bytes_of(types_.master), bytes_of(types_.compute));
  return static_cast<std::int64_t>(Arena::aligned(static_cast<std::size_t>(elements) * bytes) / bytes);
}

void Parameters::divide_buckets(OfLayer& of, int rank, const Layout& layout) {
  const std::vector<std::string> samples = layout.axes_dividing({Divides::samples});
  for (Bucket& bucket : of.buckets) {
    const std::vector<std::string>& axes = bucket.reduction.axes;
    for (const std::string& axis : axes) bucket.members *= layout.size(axis);
    bucket.part = aligned_elements((bucket.elements + bucket.members - 1) / bucket.members);
    bucket.begin = bucket.part * layout.group_rank(rank, axes);
    bucket.sharded = sharding_ != schedule::Sharding::none && std::ranges::find_first_of(axes, samples) != axes.end();
  }
}

/// All layers of a tied parameter give it the same shard, because it is alone in their buckets.
void Parameters::assign_owned_parts(const OfLayer& of) {
  for (const Side& side : of.sides) {
    Family& family = families_[side.family];
    const Bucket& bucket = of.buckets[side.bucket];
    const std::int64_t elements = stored_elements(*family.spec),
                       from = std::clamp<std::int64_t>(bucket.begin - side.offset, 0, elements),
                       to = std::clamp<std::int64_t>(bucket.begin + bucket.part - side.offset, 0, elements);
    family.owned = {from == to ? 0 : from, to - from};
    family.sharded = bucket.sharded;
    family.part = bucket.part;
    family.members = bucket.members;
  }
}

std::size_t Parameters::most_on_a_rank() const {
  std::size_t most = 0;
  for (const auto& [rank, count] : counts_) most = std::max(most, count);
  return most;
}

const Parameters::OfLayer& Parameters::of_layer(int number) const {
  const auto found = std::ranges::find(layers_, number, &OfLayer::number);
  TRIAX_REQUIRE(found != layers_.end(), "there is no layer {}", number);
  return *found;
}

std::vector<ParameterShard> Parameters::shards(int first_layer, int end_layer) const {
  std::vector<ParameterShard> out;
  for (const Parameter& parameter : parameters_) {
    if (parameter.layer < first_layer || parameter.layer >= end_layer) continue;
    const OwnedPart& owned = parameter.owned;
    const auto updated = [&](const TensorView& view) {
      const TensorView all = without_padding(view, *parameter.spec).flat();
      return parameter.sharded ? all.slice(0, owned.first, owned.first + owned.count) : all;
    };
    out.push_back({.name = parameter.name,
                   .spec = parameter.spec,
                   .first = parameter.sharded ? owned.first : 0,
                   .master = parameter.holds_part ? parameter.master : updated(parameter.master),
                   .gradient = parameter.scattered ? parameter.gradient : updated(parameter.gradient),
                   .working = !separate_working()   ? TensorView{}
                              : parameter.resharded ? parameter.working
                                                    : updated(parameter.working),
                   .state = parameter.state,
                   .group = reductions_[parameter.reduction].group,
                   .members = parameter.members,
                   .owned_first = owned.first,
                   .owned_elements = owned.count});
  }
  return out;
}

} // namespace triax::executor
