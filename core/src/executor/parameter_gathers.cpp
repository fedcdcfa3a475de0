// SPDX-License-Identifier: Apache-2.0
#include "executor/parameter_gathers.hpp"

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// Of the layers [first, end).
void gather_layers(const Parameters& parameters, int first, int end, const Groups& groups, Stream& stream,
                   ActionId id) {
  for (int number = first; number < end; ++number)
    for (const GatheredWeights& weights : parameters.gathered_of(number)) {
      Communicator* const group = groups.find(weights.group);
      TRIAX_REQUIRE(group, "there is no communicator of {} for a parameter", weights.group);
      group->wait(group->all_gather(weights.part, weights.working, stream, id), stream);
    }
}

} // namespace

void gather_parameters(RankState& state, int stage, const Groups& groups, Device& device, Stream& stream, ActionId id) {
  const Stage& of = state.stage(stage);
  gather_layers(state.parameters(), of.first(), of.end(), groups, stream, id);
  if (device.kind() == DeviceKind::host) stream.ready();
}

void refresh_working(const Parameters& parameters, Device& device, const Groups& groups, Stream& stream) {
  if (!parameters.separate_working()) return;
  for (const Parameter& parameter : parameters.all())
    if (!parameter.holds_part) device.convert(parameter.working, parameter.master, stream);
  for (int number = 0; number < parameters.layers(); ++number)
    for (const GatheredWeights& weights : parameters.gathered_of(number))
      device.convert(weights.part, weights.master, stream);
  gather_layers(parameters, 0, parameters.layers(), groups, stream, kNoAction);
}

} // namespace triax::executor
