// From rows to programs and a rank's state.
#include "train/preparation.hpp"

#include <algorithm>

#include "schedule/lower.hpp"
#include "schedule/verify.hpp"

namespace triax::train {

std::vector<Support> check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule) {
  const PipelineShape shape = pipeline_shape(run);
  std::vector<Support> out = schedule::verify(schedule, shape);
  if (const Support split = executor::check_split(model, shape.stages(), run.parallel.split); !split)
    out.push_back(split);
  return out;
}

Preparation::Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                         const Schedule& schedule) {
  const PipelineShape shape = pipeline_shape(run);
  const int pipeline_rank = layout.coordinate(rank, "pipeline");
  std::vector<schedule::Program> trainings = schedule::lower(schedule, shape);
  std::vector<schedule::Program> evaluations = schedule::lower_forward_only(schedule, shape);
  training = trainings.at(static_cast<std::size_t>(pipeline_rank));
  evaluation = evaluations.at(static_cast<std::size_t>(pipeline_rank));

  const Model& model = plugins.model();
  const OptimizerTraits traits = plugins.optimizer().traits();
  const executor::BatchShape batch{run.microbatches(), run.batch.micro, model.info().sequence, layout.data(),
                                   layout.coordinate(rank, "data")};
  const executor::RankRequest request{
      model,
      traits,
      LayerContext{layout, rank, run.batch.micro, run.vocab, run.train.compute, run.train.seed},
      {run.train.compute, run.train.master},
      executor::split_layers(model, shape.stages(), run.parallel.split),
      batch};
  state = std::make_unique<executor::RankState>(request, training, evaluation);
  prove(run, layout, plugins, trainings);
  prove(run, layout, plugins, evaluations);
}

void Preparation::prove(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                        std::span<const schedule::Program> programs) {
  std::vector<CommTraits> traits;
  for (const Axis& axis : layout.axes())
    if (axis.size > 1) traits.push_back(plugins.comm(axis.name).traits());
  std::size_t largest = 0;
  for (const auto& stage : state->stages()) largest = std::max(largest, stage->boundary_bytes());
  const schedule::Assumptions assumptions = schedule::assume(traits, largest);
  serial = assumptions.order == CommTraits::Order::serial;
  for (const Support& wrong : schedule::verify(programs, assumptions))
    throw Error(text("the lowered program does not hold: {}", wrong.reason()), run.schedule.name);
}

} // namespace triax::train
