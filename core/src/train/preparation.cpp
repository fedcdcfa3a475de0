// From rows to programs and a rank's state.
#include "train/preparation.hpp"

#include "schedule/lower.hpp"
#include "schedule/verify.hpp"

namespace triax::train {

std::vector<Support> check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule) {
  const PipelineShape shape = pipeline_shape(run);
  if (Support split = executor::check_split(model, shape.stages(), run.parallel.split); !split) return {split};
  std::vector<Support> out;
  for (const schedule::Fault& fault : schedule::verify(schedule, shape))
    out.push_back(Support::no("{}", fault.reason()));
  return out;
}

namespace {

LayerContext context_of(const config::RunConfig& run, const Layout& layout, int rank) {
  return {layout, rank, run.batch.micro, run.vocab, run.train.compute, run.train.seed};
}

std::vector<executor::StageLayers> split_of(const config::RunConfig& run, const Model& model) {
  return executor::split_layers(model, pipeline_shape(run).stages(), run.parallel.split);
}

} // namespace

Programs make_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                       const Schedule& schedule) {
  std::vector<CommTraits> traits;
  for (const Axis& axis : layout.axes())
    if (axis.size > 1) traits.push_back(plugins.comm(axis.name).traits());
  const Model& model = plugins.model();
  const schedule::Assumptions assumptions =
      schedule::assume(traits, executor::largest_boundary(model, context_of(run, layout, 0), split_of(run, model)));

  const PipelineShape shape = pipeline_shape(run);
  Programs out{schedule::lower(schedule, shape), schedule::lower_forward_only(schedule, shape),
               assumptions.order == CommTraits::Order::serial};
  for (const bool forward_only : {false, true})
    for (const schedule::Fault& wrong :
         schedule::verify(forward_only ? out.evaluation : out.training, {shape, forward_only}, assumptions))
      throw Error(text("the lowered program does not hold: {}", wrong.reason()), run.schedule.name);
  return out;
}

Preparation::Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                         const Programs& programs)
    : training(programs.training.at(static_cast<std::size_t>(layout.coordinate(rank, "pipeline")))),
      evaluation(programs.evaluation.at(static_cast<std::size_t>(layout.coordinate(rank, "pipeline")))) {
  const Model& model = plugins.model();
  const OptimizerTraits traits = plugins.optimizer().traits();
  const executor::BatchShape batch{run.microbatches(), run.batch.micro, model.info().sequence, layout.data(),
                                   layout.coordinate(rank, "data")};
  const executor::RankRequest request{
      model, traits, context_of(run, layout, rank), {run.train.compute, run.train.master}, split_of(run, model), batch};
  state = std::make_unique<executor::RankState>(request, training, evaluation);
}

} // namespace triax::train
