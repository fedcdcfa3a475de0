// SPDX-License-Identifier: Apache-2.0
// A rank's state, created from a sample model and a row as text.
#pragma once

#include <memory>
#include <string>

#include "executor/rank_state.hpp"
#include "executor/sample_model.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"

namespace triax::test {

class NoKernels final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
};

class SampleRank {
 public:
  SampleRank(const SampleModel& sample, int stages, int microbatches, const std::string& row,
             OptimizerTraits traits = {}, const Layout& of = Layout::ptd(1, 1, 1),
             Recompute recompute = Recompute::none, schedule::Sharding sharding = schedule::Sharding::none,
             std::vector<executor::ChosenSteps> chosen = {}, const std::vector<bool>& recomputes_early = {},
             bool on_host = false)
      : model(sample), optimizer(std::move(traits)), layout(of) {
    const PipelineShape shape{1, stages, microbatches};
    const Schedule rows = schedule_of(shape, std::vector<int>(static_cast<std::size_t>(stages), 0), {row});
    constexpr auto kWhole = schedule::Boundaries::whole;
    training = schedule::lower(rows, shape, kWhole, sharding, schedule::kDefaultPrefetch, recomputes_early).front();
    evaluation = schedule::lower_forward_only(rows, shape, kWhole, sharding).front();
    const executor::RankRequest request{
        model,
        optimizer,
        LayerContext{layout, 0, 2, 5},
        {},
        executor::split_layers(model, stages, {}),
        {microbatches, 2, 3, 1, 0},
        std::vector<executor::StageRecompute>(static_cast<std::size_t>(stages),
                                              {.blocks = recompute, .chosen = std::move(chosen), .on_host = on_host}),
        sharding};
    state = std::make_unique<executor::RankState>(request, training, evaluation);
  }

  void allocate(std::uint64_t seed = 1) {
    state->allocate(*device, *stream, {});
    state->draw_weights(*device, *stream, seed, 1);
  }

  /// Runs every F, B, I, W and R of a program through the stages; model.notes records the calls.
  void walk(const schedule::Program& program) {
    for (const schedule::ProgramAction& action : program.actions()) run(action);
  }
  void run(const schedule::ProgramAction& action) {
    if (!schedule::runs_layers(action.kind)) return;
    const Groups no_groups;
    const executor::MicrobatchViews& batch = state->batches().of(action.microbatch);
    DryRunKernels kernels(none);
    state->stage(action.stage).run(action, {*device, kernels, *stream, {}, no_groups, batch.samples}, batch);
  }

  const SampleModel& model;
  OptimizerTraits optimizer;
  Layout layout;
  schedule::Program training, evaluation;
  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Stream> stream = device->make_stream("sample");
  std::unique_ptr<executor::RankState> state;

 private:
  NoKernels none;
};

} // namespace triax::test
