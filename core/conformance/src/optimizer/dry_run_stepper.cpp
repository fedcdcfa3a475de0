// SPDX-License-Identifier: Apache-2.0
#include "dry_run_stepper.hpp"

#include <utility>

#include "triax/rank_activity.hpp"

namespace triax::conformance {

DryRunStepper::DryRunStepper(const Stepper& like, const DryRunSetup& setup)
    : like_(like),
      setup_(setup),
      device_(make_dry_run_device(setup.device)),
      stream_(device_->make_stream("dry run")),
      optimizer_(like.another_optimizer()) {
  states_.reserve(like.shards().size()); // shards refer to its elements
  for (const ParameterShard& of : like.shards()) {
    states_.emplace_back();
    for (const TensorView& state : of.state) states_.back().push_back(without_data(state));
    ParameterShard shard = of;
    shard.master = without_data(of.master);
    shard.gradient = without_data(of.gradient);
    shard.working = without_data(of.working);
    shard.state = states_.back();
    shards_.push_back(std::move(shard));
  }
  optimizer_->prepare(shards_);
}

TensorView DryRunStepper::without_data(const TensorView& view) const {
  return view.rank() == 0 ? TensorView() : TensorView(setup_.data, view.dtype(), view.shape());
}

void DryRunStepper::call(std::span<const ParameterShard> shards, KernelSet& kernels) {
  StepArgs arguments = like_.arguments(*stream_, setup_.groups ? *setup_.groups : no_groups_);
  arguments.scalars = static_cast<const StepScalars*>(setup_.scalars);
  arguments.scratch = {};
  if (setup_.data) arguments.scratch = {static_cast<std::byte*>(setup_.data), optimizer_->scratch_bytes(shards)};
  Optimizer& stepped = *optimizer_;
  call_plugin("step", typeid(stepped), [&] { stepped.step(shards, arguments, kernels); });
}

} // namespace triax::conformance
