// From rows to programs and a rank's state.
#include "train/preparation.hpp"

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
  training = schedule::lower(schedule, shape, pipeline_rank);
  evaluation = schedule::lower_forward_only(schedule, shape, pipeline_rank);
  for (const schedule::Program* program : {&training, &evaluation})
    for (const Support& wrong : schedule::verify(*program))
      throw Error(text("the lowered program of rank {} does not hold: {}", rank, wrong.reason()), run.schedule.name);

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
}

} // namespace triax::train
