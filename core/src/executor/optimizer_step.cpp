// SPDX-License-Identifier: Apache-2.0
// Runs OPT_STEP: on the device, on the host, or on the host one step late.
#include <utility>

#include "executor/executor.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

DelayedUpdate* Executor::delayed() const {
  const OffloadedState* const offloaded = parts_.state.offloaded();
  return offloaded ? offloaded->delayed() : nullptr;
}

/// The other thread uses only what outlives the rank's state. Elementwise optimizers do not communicate.
void Executor::use_delayed_updates() {
  const OffloadedState& offloaded = *parts_.state.offloaded();
  const HostKernels host = *offloaded.host();
  const auto update = [&offloaded, &optimizer = parts_.optimizer, host, none = Groups(),
                       weight_decay = settings_.weight_decay, scratch = parts_.state.optimizer_scratch(),
                       op_scratch = parts_.state.host_scratch()](std::size_t block, const StepScalars& scalars) {
    const StepArgs step{.scalars = &scalars,
                        .weight_decay = weight_decay,
                        .groups = none,
                        .scratch = scratch,
                        .op = {host.stream, op_scratch}};
    call_plugin("step", typeid(optimizer), [&] { optimizer.step(offloaded.call(block).shards, step, host.kernels); });
  };
  delayed()->set_update(update, settings_.stall_timeout_s);
}

StepArgs Executor::step_args(const HostKernels* host, ActionId id) const {
  const RankState& state = parts_.state;
  return {.scalars = host ? &state.values().decided() : state.values().on_device(),
          .weight_decay = settings_.weight_decay,
          .groups = parts_.groups,
          .scratch = state.optimizer_scratch(),
          .op = host ? OpContext{host->stream, state.host_scratch()} : OpContext{parts_.stream, state.scratch()},
          .action = id};
}

/// The host needs the decision of NORM before it updates. In a skipped step nothing changes, so it copies nothing.
void Executor::step_optimizer(Walk& walk, int stage, ActionId id) {
  OffloadedState* const offloaded = parts_.state.offloaded();
  const HostKernels* const host = offloaded ? offloaded->host() : nullptr;
  if (host) {
    parts_.device.wait(walk.values.value(), deadline());
    if (parts_.state.values().decided().skip != 0) return;
    if (DelayedUpdate* const updates = delayed()) return step_with_delay(walk, *updates);
  }
  const StepArgs step = step_args(host, id);
  KernelSet& kernels = host ? host->kernels : parts_.kernels;
  for (const OptimizerCall& of : optimizer_calls_.at(stage)) {
    if (of.block) offloaded->acquire(*of.block, parts_.device, deadline());
    call_plugin("step", typeid(parts_.optimizer), [&] { parts_.optimizer.step(of.shards, step, kernels); });
    if (!of.block) continue;
    if (!host) parts_.device.wait(parts_.stream.record(), deadline()); // until the block is updated
    offloaded->release(*of.block);
  }
}

/// The first OPT_STEP of a step does the work for all stages: no pass of the step follows, and later steps begin after
/// the last one. The gradients of the step are then in the memory that the update before has used.
void Executor::step_with_delay(Walk& walk, DelayedUpdate& updates) {
  if (std::exchange(walk.has_updated, true)) return;
  updates.apply();
  updates.begin(parts_.state.values().decided());
  const bool is_delayed = walk.step > settings_.warmup_steps && walk.step < settings_.last_step;
  if (!is_delayed) updates.apply();
}

} // namespace triax::executor
