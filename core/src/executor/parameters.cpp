// SPDX-License-Identifier: Apache-2.0
// The list of a rank's parameters. parameter_memory.cpp assigns memory to them.
#include "executor/parameters.hpp"

#include <algorithm>
#include <utility>

#include "triax/error.hpp"

namespace triax::executor {

Parameters::Parameters(std::shared_ptr<const ModelParameters> model, int here, std::size_t states)
    : model_(std::move(model)), here_(here), states_(states) {
  for (const ModelParameters::LayerParameters& layer : model_->layers())
    if (layer.rank == here_) layers_.push_back({layer});
  parameters_.resize(model_->count_on(here_));
  for (std::size_t index = 0; index < model_->all().size(); ++index)
    if (model_->all()[index].index.contains(here_)) local(index) = parameter_of(index);
}

Parameter Parameters::parameter_of(std::size_t index) const {
  const ModelParameters::ModelParameter& shared = model_->all()[index];
  Parameter out;
  out.name = shared.name;
  out.spec = shared.spec;
  out.ranks = shared.ranks;
  out.exchanged.resize(shared.ranks.size());
  out.reduction = shared.reduction;
  out.global = index;
  out.layer = shared.layer.at(here_);
  out.owned = shared.owned;
  out.sharded = shared.sharded;
  out.resharded = shared.sharded && sharding() == schedule::Sharding::parameters;
  out.holds_part = out.resharded || (shared.sharded && separate_working());
  out.scattered = shared.sharded && schedule::scatters_gradients(sharding());
  out.part = shared.part;
  out.members = shared.members;
  return out;
}

const Parameters::LayerParameters& Parameters::layer_parameters(int number) const {
  const auto found = std::ranges::find(layers_, number, &LayerParameters::number);
  TRIAX_REQUIRE(found != layers_.end(), "layer {} is not on this rank", number);
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
                   .group = reductions()[parameter.reduction].group,
                   .members = parameter.members,
                   .owned_first = owned.first,
                   .owned_elements = owned.count,
                   .sharded = parameter.sharded});
  }
  return out;
}

} // namespace triax::executor
