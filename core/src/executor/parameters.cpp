// Building the list of parameters, and placing them.
#include "executor/parameters.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// The tie in which this parameter is the second, or null.
const Tie* tie_of(std::span<const Tie> ties, int number, std::string_view param) {
  const auto found =
      std::ranges::find_if(ties, [&](const Tie& tie) { return tie.layer_b == number && tie.param_b == param; });
  return found == ties.end() ? nullptr : &*found;
}

bool padded(const ParamSpec& spec) {
  return spec.dim >= 0 && spec.local[spec.dim] > spec.end - spec.begin;
}

} // namespace

TensorView without_padding(const TensorView& view, const ParamSpec& spec) {
  if (!padded(spec)) return view;
  TRIAX_REQUIRE(spec.dim == 0, "{} is padded along dimension {}: padding must be the last rows", spec.name, spec.dim);
  return view.slice(0, 0, spec.end - spec.begin);
}

Parameters::Parameters(std::span<const NumberedLayer> layers, std::span<const Tie> ties, const MemoryTypes& types,
                       std::size_t states)
    : types_(types), states_(states) {
  for (const Tie& tie : ties)
    TRIAX_REQUIRE(tie.layer_a < tie.layer_b, "a tie joins layer {} to layer {}: the first comes before the second",
                  tie.layer_a, tie.layer_b);
  for (const NumberedLayer& numbered : layers) add(numbered, ties);
}

void Parameters::add(const NumberedLayer& numbered, std::span<const Tie> ties) {
  OfLayer& of = layers_.emplace_back();
  of.number = numbered.number;
  for (const ParamSpec& spec : numbered.layer->params()) {
    const Tie* tie = tie_of(ties, numbered.number, spec.name);
    if (!tie) {
      of.sides.push_back({parameters_.size(), -1});
      parameters_.push_back({text("{}/{}", numbered.layer->name(), spec.name), &spec, {}, {}, {}, {}, {}});
      continue;
    }
    const OfLayer& first = of_layer(tie->layer_a);
    const auto side = std::ranges::find_if(first.sides, [&](const Side& candidate) {
      return parameters_[candidate.parameter].spec->name == tie->param_a;
    });
    TRIAX_REQUIRE(side != first.sides.end(), "layer {} has no parameter \"{}\" to tie to", tie->layer_a, tie->param_a);
    Parameter& shared = parameters_[side->parameter];
    TRIAX_REQUIRE(shared.spec->local == spec.local, "{} is {} and cannot be tied to {} of layer {}, which is {}",
                  shared.name, shared.spec->local, spec.name, numbered.number, spec.local);
    of.sides.push_back({side->parameter, static_cast<int>(shared.others.size())});
    shared.others.emplace_back();
  }
}

const Parameters::OfLayer& Parameters::of_layer(int number) const {
  const auto found = std::ranges::find(layers_, number, &OfLayer::number);
  TRIAX_REQUIRE(found != layers_.end(), "layer {} is not on this rank", number);
  return *found;
}

void Parameters::place(RankMemory& memory) {
  for (Parameter& parameter : parameters_) {
    const Shape& local = parameter.spec->local;
    parameter.master = memory.weights.tensor(types_.master, local);
    parameter.working = separate_working() ? memory.working.tensor(types_.compute, local) : parameter.master;
    parameter.state.clear();
    for (std::size_t i = 0; i < states_; ++i)
      parameter.state.push_back(
          memory.optimizer.tensor(types_.master, {without_padding(parameter.master, *parameter.spec).elements()}));
  }
  // Layer by layer, so that the gradients of a layer lie together whatever else is on the rank.
  for (OfLayer& of : layers_) {
    of.working.clear();
    of.gradients.clear();
    for (const Side& side : of.sides) {
      Parameter& parameter = parameters_[side.parameter];
      TensorView& accumulator =
          side.other < 0 ? parameter.gradient : parameter.others[static_cast<std::size_t>(side.other)];
      accumulator = memory.gradients.tensor(types_.master, parameter.spec->local);
      of.working.push_back(parameter.working);
      of.gradients.push_back(accumulator);
    }
  }
}

std::vector<ParameterShard> Parameters::shards() const {
  std::vector<ParameterShard> out;
  for (const Parameter& parameter : parameters_) {
    const auto flat = [&](const TensorView& view) { return without_padding(view, *parameter.spec).flat(); };
    out.push_back({parameter.name, flat(parameter.master), flat(parameter.gradient),
                   separate_working() ? flat(parameter.working) : TensorView{}, parameter.state,
                   parameter.spec->decay});
  }
  return out;
}

} // namespace triax::executor
