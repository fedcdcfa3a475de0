// SPDX-License-Identifier: Apache-2.0
// Plans a rank's memory: runs the layers' code with a kernel set and a device that only record requirements.
#include <set>

#include "executor/rank_state.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

Plan RankState::plan(KernelSet& kernels, Optimizer& optimizer) {
  PlanKernels notes(kernels);
  const std::unique_ptr<Device> device = make_plan_device(kernels.device_kind());
  const std::unique_ptr<Stream> stream = device->make_stream("plan");
  const Groups no_groups;
  const StepScalars scalars;

  for (const schedule::Program* program : {&training_, &evaluation_}) {
    std::set<std::pair<schedule::Kind, int>> seen;
    for (const schedule::ProgramAction& action : program->actions()) {
      if (!schedule::runs_layers(action.kind) || !seen.insert({action.kind, action.stage}).second) continue;
      const MicrobatchViews& batch = batches_.of(action.microbatch);
      const LayerCall call{*device, notes,    *stream,  {}, no_groups, batch.samples, program == &training_,
                           1,       &scalars, kNoAction};
      stage(action.stage).run(action, call, batch);
    }
  }

  const std::vector<ParameterShard> shards = parameters_->shards();
  const ValueContext values{*device, notes, *stream, no_groups, {}, Deadline::max()};
  values_->add_squares(values);
  values_->decide(0, {}, values);
  const ActivityScope call(ActivityScope::Kind::plugin_call, "prepare", typeid(optimizer));
  optimizer.prepare(shards);
  optimizer.step(shards, {&scalars, 0, {*stream, {}}}, notes);
  return {notes.scratch_needed(), notes.refusals()};
}

} // namespace triax::executor
