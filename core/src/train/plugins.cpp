// SPDX-License-Identifier: Apache-2.0
// Creates a rank's plugin objects and queries them.
#include "train/plugins.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "executor/kept_state.hpp"
#include "plugin/call_guard.hpp"
#include "train/comm_refusals.hpp"
#include "train/run_limits.hpp"
#include "train/uninstalled.hpp"
#include "triax/rank_activity.hpp"
#include "triax/training_options.hpp"

namespace triax::train {

namespace {

template <class Interface>
plugin::Instance<Interface> make(const config::PluginChoice& choice, const Layout& layout, int rank, int threads,
                                 Log& log) {
  TRIAX_REQUIRE(choice.library, "{}.plugin \"{}\" is not loaded", choice.table, choice.name);
  return call_plugin("create", choice.name.c_str(), [&] {
    return plugin::create<Interface>(*choice.library, PluginContext{choice.options, log, layout, rank, threads},
                                     choice.folders);
  });
}

constexpr const char* kDefectHint = "this is a defect of the plugin: report it to its author";

/// Names are parts of tensor names in checkpoints, and of options and messages.
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// The defect of an optimizer's state; empty if it has none. The engine keeps one tensor per name.
std::string defect_of(const OptimizerTraits& first, const OptimizerTraits& second) {
  if (first.state.size() > kMaxStates)
    return text("traits() gives {} state tensors, which are more than {}", first.state.size(), kMaxStates);
  for (std::size_t i = 0; i < first.state.size(); ++i) {
    if (first.state[i].empty()) return text("traits() gives state tensor {} an empty name", i);
    if (first.state[i] == executor::kMasterName)
      return text("traits() gives a state tensor the name \"{}\", which the engine uses for the weights",
                  executor::kMasterName);
    if (!std::ranges::all_of(first.state[i], is_name_character))
      return text("traits() gives a state tensor the name \"{}\"; names have letters, digits, \"_\" and \"-\" only",
                  shortened(first.state[i]));
    if (std::ranges::count(first.state, first.state[i]) > 1)
      return text("traits() gives two state tensors the name \"{}\"", shortened(first.state[i]));
  }
  const bool same = first.state == second.state && first.elementwise == second.elementwise &&
                    first.adds_over_group == second.adds_over_group;
  return same ? std::string() : "traits() returns other traits at its second call";
}

/// Whether such a communicator can connect the ranks, given whether they are threads or processes.
Refusals reaches(CommTraits::Ranks ranks, const Layout& layout, const Placement& placement) {
  if (placement.ranks_are_threads && ranks == CommTraits::Ranks::one_per_process)
    return make_refusal(ErrorCode::kUnsupported, {},
                        "it requires one process per rank, but the {} ranks of this run are threads of one process",
                        layout.world_size())
        .with_hint("use comm-local, or another communicator for threads of one process");
  if (!placement.ranks_are_threads && ranks == CommTraits::Ranks::same_process)
    return make_refusal(ErrorCode::kUnsupported, {},
                        "it joins threads of one process, but the {} ranks of this run are processes",
                        layout.world_size())
        .with_hint("use a communicator for processes");
  return {};
}

} // namespace

PipelineShape pipeline_shape(const config::RunConfig& run) {
  return {run.parallel.pipeline, run.parallel.chunks, static_cast<int>(run.microbatches())};
}

schedule::Boundaries boundaries(const config::RunConfig& run) {
  const bool scattered = run.parallel.scatter_gather && run.parallel.tensor > 1;
  return scattered ? schedule::Boundaries::scattered : schedule::Boundaries::whole;
}

schedule::Sharding sharding(const config::RunConfig& run) {
  if (run.parallel.data == 1) return schedule::Sharding::none;
  if (run.optimizer_core.shard == "parameters") return schedule::Sharding::parameters;
  if (run.optimizer_core.shard == "gradients") return schedule::Sharding::gradients;
  return run.optimizer_core.shard == "states" ? schedule::Sharding::states : schedule::Sharding::none;
}

Layout layout_of(const config::RunConfig& run) {
  return Layout::ptd(run.parallel.pipeline, run.parallel.tensor, run.parallel.data);
}

namespace {

/// For a refusal that comes without a next step.
std::string next_step(ErrorCode code, const std::string& table) {
  return code == ErrorCode::kPluginFailed
             ? text("report this to the author of the plugin, or choose another {}.plugin", table)
             : text("change the run as the message says, or choose another {}.plugin", table);
}

/// Keys that the run does not have, such as misspelt ones, have no position, and would hide the plugin.
Refusals without_unknown_keys(const config::RunConfig& run, Refusals refusals) {
  for (Refusal& refusal : refusals)
    if (std::ranges::none_of(refusal.keys, [&run](const std::string& key) { return run.values.contains(key); }))
      refusal.keys.clear();
  return refusals;
}

/// Weights that exist fix the options of the model.
bool loads_weights(const config::RunConfig& run) {
  return run.generate || run.evaluates || !run.checkpoint.from.empty();
}

/// Whether it names options of the model, and nothing else that could change.
bool is_of_model_options(const Refusal& refusal) {
  return std::ranges::all_of(refusal.keys,
                             [](const std::string& key) { return key.starts_with("model.") && key != "model.plugin"; });
}

} // namespace

Refusal failure_of(const config::PluginChoice& choice, const Error& error) {
  const std::string name = choice.name + ", "; // guarded_call() begins with the plugin, of_plugin() does too
  std::string where = error.where();
  if (where.starts_with(name)) where.erase(0, name.size());
  Refusal failure =
      make_refusal(ErrorCode::kPluginFailed, {}, "{}{}{}", where, where.empty() ? "" : ": ", error.message());
  failure.hint = error.hint();
  return of_plugin(choice, failure).front();
}

Refusals of_plugin(const config::PluginChoice& choice, Refusals refusals) {
  const std::string& table = choice.named_in.empty() ? choice.table : choice.named_in;
  for (Refusal& refusal : refusals) {
    if (refusal.message.empty()) {
      refusal.keys.clear();
      refusal.message = "it refuses the run and gives no reason";
      refusal.hint = kDefectHint;
    }
    if (!refusal.keys.empty()) continue;
    refusal.keys.push_back(table + ".plugin");
    refusal.message = text("{}.plugin \"{}\": {}", table, choice.name, refusal.message);
    if (refusal.hint.empty()) refusal.hint = next_step(refusal.code, table);
  }
  return refusals;
}

Refusals of_kernels(const config::RunConfig& run, const Refusals& refusals) {
  return of_plugin(run.kernels, refusals);
}

RankPlugins::RankPlugins(const config::RunConfig& run, const Layout& layout, int rank, int threads, Log& log)
    : run_(run),
      model_(make<Model>(run.model, layout, rank, threads, log)),
      scheduler_(make<Scheduler>(run.schedule, layout, rank, threads, log)),
      kernels_(run.kernels.library ? make<KernelSet>(run.kernels, layout, rank, threads, log)
                                   : make_uninstalled_kernels()),
      host_(updates_on_host(run, kernels_->device_kind())
                ? std::make_unique<HostKernelSet>(run, layout, rank, threads, log)
                : nullptr),
      optimizer_(make<Optimizer>(run.optimizer, layout, rank, threads, log)) {
  for (const auto& [axis, choice] : run.comm)
    if (!backends_.contains(choice.table))
      backends_.emplace(choice.table, choice.library ? make<CommBackend>(choice, layout, rank, threads, log)
                                                     : make_uninstalled_communicator());
  plugin::guarded_call(run.model.name, "count", [this] { require_count(*model_); });
}

std::map<std::string, std::vector<std::string>> RankPlugins::axes_served(const Layout& layout) const {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [axis, choice] : run_.comm)
    if (layout.size(axis) > 1) out[choice.table].push_back(axis);
  return out;
}

/// Skips tables whose axes all have one rank: they need no communicator.
void RankPlugins::ask_communicators(const Layout& layout, const Placement& placement, bool on_this_machine,
                                    Refusals& refusals) const {
  if (!run_.kernels.library) return; // the device kind is not known
  CommRefusals refused(run_);
  for (const auto& [table, axes] : axes_served(layout)) {
    const config::PluginChoice& choice = run_.comm.at(axes.front());
    const CommBackend& backend = *backends_.at(table);
    const CommRequest request{kernels_->device_kind(), axes, placement.ranks_are_threads, on_this_machine};
    const Refusals answer = plugin::guarded_call(choice.name, "supports", [&] {
      Refusals both = reaches(backend.traits().ranks, layout, placement);
      if (both.empty()) both.add(backend.supports(request)); // a plugin may refuse the placement for the same reason
      return both;
    });
    for (const Refusal& refusal : answer) refused.add(refusal, choice, axes);
  }
  refusals.add(refused.list());
}

Schedule RankPlugins::rows() const {
  return rows(pipeline_shape(run_));
}

Schedule RankPlugins::rows(const PipelineShape& shape) const {
  const auto rows = [&] {
    Schedule out = scheduler_->rows(shape);
    require_actions(out);
    return out;
  };
  return plugin::guarded_call(run_.schedule.name, "rows", rows, plugin::CallKind::slow_call);
}

std::vector<int> RankPlugins::stage_rank() const {
  const PipelineShape shape = pipeline_shape(run_);
  PipelineShape shortest = shape;
  shortest.microbatches = std::min(shape.microbatches, shape.pipeline);
  const bool is_supported =
      plugin::guarded_call(run_.schedule.name, "supports", [&] { return scheduler_->supports(shortest).empty(); });
  return rows(is_supported ? shortest : shape).stage_rank().at(0);
}

OptimizerTraits RankPlugins::optimizer_traits() const {
  return plugin::guarded_call(run_.optimizer.name, "traits", [this] { return optimizer_->traits(); });
}

std::vector<std::string> RankPlugins::training_options() const {
  auto* const named = find_extension<TrainingOptions>(*model_);
  if (!named) return {};
  return plugin::guarded_call(run_.model.name, "training_options", [named] { return named->training_options(); });
}

Refusals RankPlugins::check_optimizer_traits() const {
  const OptimizerTraits traits = optimizer_traits();
  const std::string defect = defect_of(traits, optimizer_traits());
  if (!defect.empty())
    return of_plugin(run_.optimizer,
                     make_refusal(ErrorCode::kPluginFailed, {}, "{}", defect).with_hint("{}", kDefectHint));
  if (traits.may_be_sharded() || sharding(run_) == schedule::Sharding::none) return {};
  return make_refusal(ErrorCode::kUnsupported, {"optimizer.shard", "optimizer.plugin"},
                      "optimizer.shard = \"{}\" divides parameters, but optimizer.plugin \"{}\" needs whole ones",
                      run_.optimizer_core.shard, run_.optimizer.name)
      .with_hint(
          "use optimizer.shard = \"none\", or an optimizer that updates each element alone, such as "
          "optim-adamw");
}

Refusals RankPlugins::answer_of(const config::PluginChoice& choice, const std::function<Refusals()>& supports) const {
  const Refusals refusals = plugin::guarded_call(choice.name, "supports", supports);
  return of_plugin(choice, without_unknown_keys(run_, refusals));
}

Refusals RankPlugins::model_refusals(const Layout& layout) const {
  Refusals out = answer_of(run_.model, [&] {
    return model_->supports({.vocab = run_.vocab,
                             .compute = run_.train.compute,
                             .sequence_parallel = run_.parallel.sequence && layout.tensor_size() > 1,
                             .recompute = run_.memory.recompute.any("full"),
                             .purpose = run_.generate ? Purpose::generate : Purpose::train,
                             .has_weights = loads_weights(run_)},
                            layout);
  });
  for (Refusal& refusal : out)
    if (loads_weights(run_) && is_of_model_options(refusal))
      refusal.hint = "use the values that the checkpoint was written with";
  return out;
}

Refusals RankPlugins::fixed_refusals() const {
  Refusals out = answer_of(run_.kernels, [&] {
    return kernels_->supports(KernelRequest{run_.train.compute, run_.train.master});
  });
  if (host_ && kernels_->computes()) out.add(host_->refusals(run_, optimizer_traits()));
  if (run_.generate || !run_.kernels.library) return out; // if it is not installed, the device kind is not known
  out.add(optimizer_refusals());
  if (run_.memory.offload != "none" && !run_.evaluates) ask_for_offload(out); // an evaluation has no state
  if (kernels_->device_kind() != DeviceKind::host && run_.log.timeline > 0)
    out.add(make_refusal(ErrorCode::kUnsupported, {"log.timeline", "kernels.plugin"},
                         "log.timeline = {}: kernels.plugin \"{}\" computes on a {} device, but the host does not know "
                         "when its passes run",
                         run_.log.timeline, run_.kernels.name, name_of(kernels_->device_kind()))
                .with_hint("leave log.timeline out, or use a kernel set that computes on the host"));
  return out;
}

/// An optimizer may name a key such as train.precision, whose place says nothing about the optimizer.
Refusals RankPlugins::optimizer_refusals() const {
  const DeviceKind device = host_ ? DeviceKind::host : kernels_->device_kind();
  Refusals out = answer_of(run_.optimizer, [&] { return optimizer_->supports({run_.train.master, device}); });
  const std::string prefix = text("optimizer.plugin \"{}\": ", run_.optimizer.name);
  for (Refusal& refusal : out)
    if (!refusal.message.starts_with(prefix)) refusal.message = prefix + refusal.message;
  return out;
}

Refusals RankPlugins::axis_refusals(const Layout& layout, const Placement& placement, bool on_this_machine) const {
  Refusals out;
  ask_communicators(layout, placement, on_this_machine, out);
  if (!run_.generate && run_.kernels.library && run_.train.cuda_graph) ask_for_graph(layout, out);
  return out;
}

Refusals RankPlugins::refusals(const Layout& layout, const Placement& placement, bool on_this_machine) const {
  Refusals out = model_refusals(layout);
  out.add(fixed_refusals());
  if (!run_.generate) {
    out.add(check_optimizer_traits());
    out.add(answer_of(run_.schedule, [&] { return scheduler_->supports(pipeline_shape(run_)); }));
  }
  out.add(axis_refusals(layout, placement, on_this_machine));
  return out;
}

/// State in a file is updated in buffers in the host's memory.
void RankPlugins::ask_for_offload(Refusals& refusals) const {
  if (!kernels_->computes())
    return refusals.add(
        make_refusal(ErrorCode::kUnsupported, {"memory.offload", "kernels.plugin"},
                     "memory.offload = \"{}\": kernels.plugin \"{}\" does not compute, so it has no state",
                     run_.memory.offload, run_.kernels.name)
            .with_hint("leave memory.offload out, or use another kernel set"));
  if (kernels_->device_kind() == DeviceKind::host && run_.memory.offload_delayed_update)
    refusals.add(
        make_refusal(ErrorCode::kUnsupported, {"memory.offload_delayed_update", "kernels.plugin"},
                     "memory.offload_delayed_update = true: kernels.plugin \"{}\" computes on the CPU, which cannot "
                     "update the weights while it computes the next step",
                     run_.kernels.name)
            .with_hint("leave memory.offload_delayed_update out, or use a kernel set for GPUs"));
  if (kernels_->device_kind() == DeviceKind::host || host_) return;
  refusals.add(
      make_refusal(ErrorCode::kUnsupported, {"memory.offload", "kernels.plugin"},
                   "memory.offload = \"{}\": kernels.plugin \"{}\" computes on a {} device, but state in a file is "
                   "updated in the memory of the host only",
                   run_.memory.offload, run_.kernels.name, name_of(kernels_->device_kind()))
          .with_hint("use memory.offload = \"optimizer\" or optimizer.shard, or a kernel set that computes on the "
                     "host, such as kernels-cpu"));
}

/// A CUDA graph runs without the host.
void RankPlugins::ask_for_graph(const Layout& layout, Refusals& refusals) const {
  if (kernels_->device_kind() != DeviceKind::cuda)
    refusals.add(
        make_refusal(ErrorCode::kUnsupported, {"train.cuda_graph", "kernels.plugin"},
                     "train.cuda_graph: kernels.plugin \"{}\" computes on a {} device, which has no CUDA graphs",
                     run_.kernels.name, name_of(kernels_->device_kind()))
            .with_hint("leave train.cuda_graph out, or use a kernel set for GPUs"));
  const Refusal moved =
      make_refusal(ErrorCode::kUnsupported, {}, "the host advances its calls, so a CUDA graph cannot contain them")
          .with_hint("leave train.cuda_graph out, or use a communicator whose calls run on the GPU's streams");
  CommRefusals by_host(run_);
  for (const auto& [table, axes] : axes_served(layout))
    if (run_.comm.at(axes.front()).library && !backends_.at(table)->traits().stream_ordered)
      by_host.add(moved, run_.comm.at(axes.front()), axes);
  refusals.add(by_host.list("train.cuda_graph: ", {"train.cuda_graph"}));
}

Refusals RankPlugins::device_available(const DeviceRequest& request) const {
  return of_kernels(run_, plugin::guarded_call(run_.kernels.name, "device_available",
                                               [&] { return kernels_->device_available(request); }));
}

std::unique_ptr<Device> RankPlugins::make_device(const DeviceRequest& request) const {
  if (const Refusals answer = device_available(request); !answer.empty()) throw to_error(answer);
  return plugin::guarded_call(run_.kernels.name, "make_device", [&] { return kernels_->make_device(request); });
}

} // namespace triax::train
