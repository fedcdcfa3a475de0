// Making a rank's plugin objects and asking them.
#include "train/plugins.hpp"

#include <set>

#include "plugin/asking.hpp"

namespace triax::train {

namespace {

template <class Interface>
plugin::Instance<Interface> make(const config::PluginChoice& choice, const Layout& layout, int rank, int threads,
                                 Log& log) {
  TRIAX_REQUIRE(choice.library, "{}.plugin \"{}\" is not loaded", choice.table, choice.name);
  return plugin::create<Interface>(*choice.library, PluginContext{choice.options, log, layout, rank, threads});
}

/// Whether a communicator of this kind reaches from rank to rank where the run has them.
Support reaches(const config::PluginChoice& choice, CommTraits::Ranks ranks, const Layout& layout,
                const Placement& placement) {
  if (placement.ranks_are_threads && ranks == CommTraits::Ranks::one_per_process)
    return Support::no("{}.plugin \"{}\" takes one rank a process: this run's {} ranks are threads of one process",
                       choice.table, choice.name, layout.world())
        .hint("use comm-local, or another communicator that joins ranks of one process");
  if (!placement.ranks_are_threads && ranks == CommTraits::Ranks::same_process)
    return Support::no("{}.plugin \"{}\" joins ranks of one process: this run's {} ranks are processes", choice.table,
                       choice.name, layout.world())
        .hint("use a communicator that reaches other processes");
  return Support::yes();
}

} // namespace

PipelineShape pipeline_shape(const config::RunConfig& run) {
  return {run.parallel.pipeline, run.parallel.chunks, static_cast<int>(run.microbatches())};
}

schedule::Boundaries boundaries(const config::RunConfig& run) {
  const bool scattered = run.parallel.scatter_gather && run.parallel.tensor > 1;
  return scattered ? schedule::Boundaries::scattered : schedule::Boundaries::whole;
}

Layout layout_of(const config::RunConfig& run) {
  return Layout::ptd(run.parallel.pipeline, run.parallel.tensor, run.parallel.data);
}

RankPlugins::RankPlugins(const config::RunConfig& run, const Layout& layout, int rank, int threads, Log& log)
    : run_(run),
      model_(make<Model>(run.model, layout, rank, threads, log)),
      scheduler_(make<Scheduler>(run.schedule, layout, rank, threads, log)),
      kernels_(make<KernelSet>(run.kernels, layout, rank, threads, log)),
      optimizer_(make<Optimizer>(run.optimizer, layout, rank, threads, log)) {
  for (const auto& [axis, choice] : run.comm)
    if (!backends_.contains(choice.table))
      backends_.emplace(choice.table, make<CommBackend>(choice, layout, rank, threads, log));
}

Support RankPlugins::comm_supports(const std::string& table, const Layout& layout, const Placement& placement) const {
  CommRequest request{kernels_->device_kind(),
                      {run_.train.compute, run_.train.master, DType::f64, DType::i32},
                      {},
                      placement.ranks_are_threads};
  const config::PluginChoice* serving = nullptr; // an axis longer than 1
  for (const auto& [axis, choice] : run_.comm) {
    if (choice.table != table || layout.size(axis) == 1) continue;
    request.axes.push_back(axis);
    serving = &choice;
  }
  if (!serving) return Support::yes(); // it will join nobody
  const CommBackend& backend = *backends_.at(table);
  if (Support answer = reaches(*serving, backend.traits().ranks, layout, placement); !answer) return answer;
  return backend.supports(request);
}

Schedule RankPlugins::rows() const {
  return plugin::asking(run_.schedule.name, "rows", [this] { return scheduler_->rows(pipeline_shape(run_)); });
}

std::vector<Support> RankPlugins::refusals(const Layout& layout, const Placement& placement) const {
  std::vector<Support> out;
  std::set<std::string> asked; // tables: axes may share a backend
  const auto ask = [&out](Support answer) {
    if (!answer) out.push_back(std::move(answer));
  };
  const auto supports = [&ask](const std::string& plugin, auto call) { ask(plugin::asking(plugin, "supports", call)); };
  supports(run_.model.name, [&] {
    return model_->supports({run_.vocab, run_.batch.micro, run_.train.compute}, layout);
  });
  supports(run_.kernels.name, [&] { return kernels_->supports(KernelRequest{run_.train.compute, run_.train.master}); });
  supports(run_.optimizer.name, [&] { return optimizer_->supports({run_.train.master}); });
  supports(run_.schedule.name, [&] { return scheduler_->supports(pipeline_shape(run_)); });
  for (const auto& [axis, choice] : run_.comm)
    if (asked.insert(choice.table).second)
      supports(choice.name, [&, &table = choice.table] { return comm_supports(table, layout, placement); });
  if (run_.train.cuda_graph) ask_for_graph(layout, out);
  if (kernels_->device_kind() != DeviceKind::host && run_.log.timeline > 0)
    ask(Support::no("log.timeline = {}: kernels.plugin \"{}\" computes on a {} device, where the times at which passes "
                    "run are not known to the host",
                    run_.log.timeline, run_.kernels.name, name_of(kernels_->device_kind()))
            .hint("leave log.timeline out, or use a kernel set that computes on the host"));
  return out;
}

/// What a graph holds runs without the host.
void RankPlugins::ask_for_graph(const Layout& layout, std::vector<Support>& refusals) const {
  if (kernels_->device_kind() != DeviceKind::cuda)
    refusals.push_back(
        Support::no("train.cuda_graph: kernels.plugin \"{}\" computes on a {} device, which records nothing",
                    run_.kernels.name, name_of(kernels_->device_kind()))
            .hint("leave train.cuda_graph out, or use a kernel set for GPUs"));
  for (const auto& [axis, choice] : run_.comm) {
    if (layout.size(axis) == 1 || backends_.at(choice.table)->traits().stream_ordered) continue;
    refusals.push_back(
        Support::no("train.cuda_graph: {}.plugin \"{}\", which serves the {} axis, moves data by the host, "
                    "and a graph runs without it",
                    choice.table, choice.name, axis)
            .hint("leave train.cuda_graph out, or use a communicator whose calls run on the GPU's "
                  "streams"));
  }
}

Support RankPlugins::device_available(const DeviceRequest& request) const {
  Support answer =
      plugin::asking(run_.kernels.name, "device_available", [&] { return kernels_->device_available(request); });
  if (answer) return answer;
  return Support::no("kernels.plugin \"{}\": {}", run_.kernels.name, answer.reason()).hint("{}", answer.hint());
}

std::unique_ptr<Device> RankPlugins::make_device(const DeviceRequest& request) const {
  if (const Support answer = device_available(request); !answer) throw Error(answer.reason(), {}, answer.hint());
  return plugin::asking(run_.kernels.name, "make_device", [&] { return kernels_->make_device(request); });
}

} // namespace triax::train
