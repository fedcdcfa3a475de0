// SPDX-License-Identifier: Apache-2.0
// The plugin objects of a rank, and what the run requires of them.
//
// Threads: the rank's main thread. Ownership: owns the objects; run, layout and log must outlive it. Blocking: by
// contract, plugin objects are cheap to create. Errors: Error with the plugin's message.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "plugin/loader.hpp"
#include "schedule/rules.hpp"
#include "train/host_kernels.hpp"
#include "train/rank_placement.hpp"
#include "triax/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/scheduler.hpp"

namespace triax::train {

class RankPlugins {
 public:
  RankPlugins(const config::RunConfig& run, const Layout& layout, int rank, int threads, Log& log);

  Model& model() const { return *model_; }
  /// The scheduler's schedule for this run, unverified. Throws Error naming the scheduler if that throws.
  Schedule rows() const;
  /// The same for another shape.
  Schedule rows(const PipelineShape& shape) const;
  /// Pipeline rank of each stage of the run, from the schedule of as few microbatches as possible: it does not depend
  /// on their number.
  std::vector<int> stage_rank() const;
  KernelSet& kernels() const { return *kernels_; }
  /// The kernel set that updates the weights, if not kernels(); null otherwise.
  HostKernelSet* host() const { return host_.get(); }
  Optimizer& optimizer() const { return *optimizer_; }
  /// Throws Error naming the optimizer if that throws.
  OptimizerTraits optimizer_traits() const;
  /// Options of the model that act in training only; empty if it does not name them. Throws Error naming the model if
  /// that throws.
  std::vector<std::string> training_options() const;
  /// The backend of an axis; axes with the same table share one object.
  CommBackend& comm(const std::string& axis) const { return *backends_.at(run_.comm.at(axis).table); }

  /// Calls supports() of every plugin with what this run requires. `on_this_machine`: includes what depends on the
  /// machine.
  Refusals refusals(const Layout& layout, const Placement& placement, bool on_this_machine) const;
  /// Parts of refusals(), for a search that asks for many layouts.
  /// @{
  Refusals model_refusals(const Layout& layout) const;
  /// The same for every layout, split, microbatch and schedule.
  Refusals fixed_refusals() const;
  Refusals optimizer_refusals() const;
  /// They depend on which axes have several ranks, and not on how many.
  Refusals axis_refusals(const Layout& layout, const Placement& placement, bool on_this_machine) const;
  /// @}
  /// Whether this machine has the device that the kernel set needs, with the kernel set's reason.
  Refusals device_available(const DeviceRequest& request) const;
  /// Throws Error with that reason.
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const;

 private:
  /// The plugin's answer, with the keys and the plugin that it concerns.
  Refusals answer_of(const config::PluginChoice& choice, const std::function<Refusals()>& supports) const;
  Refusals check_optimizer_traits() const;
  void ask_for_graph(const Layout& layout, Refusals& refusals) const;
  void ask_for_offload(Refusals& refusals) const;
  void ask_communicators(const Layout& layout, const Placement& placement, bool on_this_machine,
                         Refusals& refusals) const;
  /// Tables with the axes of more than one rank that they serve. Tables without such axes are left out.
  std::map<std::string, std::vector<std::string>> axes_served(const Layout& layout) const;

  const config::RunConfig& run_;
  plugin::Instance<Model> model_;
  plugin::Instance<Scheduler> scheduler_;
  plugin::Instance<KernelSet> kernels_;
  std::unique_ptr<HostKernelSet> host_;
  plugin::Instance<Optimizer> optimizer_;
  std::map<std::string, plugin::Instance<CommBackend>> backends_; // by table: "comm", "comm.tensor"...
};

/// Gives each refusal without keys its plugin, the key that names the plugin, and a next step if it has none.
Refusals of_plugin(const config::PluginChoice& choice, Refusals refusals);
/// The same for an exception of the plugin.
Refusal failure_of(const config::PluginChoice& choice, const Error& error);
PipelineShape pipeline_shape(const config::RunConfig& run);
/// Scattered if the run sets it and there is more than one tensor rank.
schedule::Boundaries boundaries(const config::RunConfig& run);
/// The state that the data ranks divide; none if there is one.
schedule::Sharding sharding(const config::RunConfig& run);
Layout layout_of(const config::RunConfig& run);
/// An error of the kernel set or its device, with the kernel set's name in front.
Refusals of_kernels(const config::RunConfig& run, const Refusals& refusals);

} // namespace triax::train
