// SPDX-License-Identifier: Apache-2.0
#include "executor/parameter_gathers.hpp"

#include "triax/error.hpp"

namespace triax::executor {

namespace {

void gather(const Groups& groups, const std::string& group_name, const TensorView& part, const TensorView& whole,
            Stream& stream, ActionId id) {
  Communicator* const group = groups.find(group_name);
  TRIAX_REQUIRE(group, "there is no communicator of {} for a parameter", group_name);
  group->wait(group->all_gather(part, whole, stream, id), stream);
}

/// Gathers the weights of the layers [first, end).
void gather_layers(const Parameters& parameters, int first, int end, const Groups& groups, Stream& stream,
                   ActionId id) {
  for (int number = first; number < end; ++number)
    for (const GatheredWeights& weights : parameters.gathered_of(number))
      if (!weights.working.empty()) gather(groups, weights.group, weights.part, weights.working, stream, id);
}

} // namespace

void gather_parameters(RankState& state, int stage, const Groups& groups, Device& device, Stream& stream, ActionId id) {
  const Stage& of = state.stage(stage);
  gather_layers(state.parameters(), of.first(), of.end(), groups, stream, id);
  if (device.kind() == DeviceKind::host) stream.ready();
}

void unshard_parameters(const Parameters& parameters, const Stage& stage, int slot, const Groups& groups,
                        TransferStreams& transfers, Stream& compute, ActionId id) {
  Stream& stream = transfers.begin_reduction(compute);
  for (int number = stage.first(); number < stage.end(); ++number)
    for (const UnshardedWeights& weights : parameters.unsharded_of(number))
      gather(groups, weights.group, weights.part, weights.whole.at(static_cast<std::size_t>(slot)), stream, id);
  transfers.end_reduction(id);
}

void refresh_working(RankState& state, Device& device, const Groups& groups, Stream& stream, Deadline deadline) {
  const Parameters& parameters = state.parameters();
  if (!parameters.separate_working()) return;
  if (parameters.offloads_master()) {
    state.offloaded()->refresh_working(device, stream, deadline);
  } else {
    for (const Parameter& parameter : parameters.all())
      if (!parameter.holds_part) device.convert(parameter.working, parameter.master, stream);
    for (const int number : parameters.layers_here())
      for (const GatheredWeights& weights : parameters.gathered_of(number))
        device.convert(weights.part, weights.master, stream);
  }
  for (const int number : parameters.layers_here())
    gather_layers(parameters, number, number + 1, groups, stream, kNoAction);
}

} // namespace triax::executor
