// SPDX-License-Identifier: Apache-2.0
// The objects of a rank's plugins, and what the run asks of them.
//
// Threads: the rank's main thread. Ownership: owns the objects; run, layout and log must outlive it. Blocking: making
// plugin objects is cheap by contract. Errors: Error with the plugin's own words.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "plugin/loader.hpp"
#include "schedule/rules.hpp"
#include "train/placement.hpp"
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
  /// What the scheduler makes of this run's shape, unverified. Throws Error naming it if it throws.
  Schedule rows() const;
  KernelSet& kernels() const { return *kernels_; }
  Optimizer& optimizer() const { return *optimizer_; }
  /// The backend that serves an axis; axes that share a table share the object.
  CommBackend& comm(const std::string& axis) const { return *backends_.at(run_.comm.at(axis).table); }

  /// Every supports() of every kind, with what this run asks.
  /// `on_this_machine`: also what depends on it.
  std::vector<Support> refusals(const Layout& layout, const Placement& placement, bool on_this_machine) const;
  /// Whether this machine has the device that the kernel set needs, in its words.
  Support device_available(const DeviceRequest& request) const;
  /// Throws Error with what device_available() says against it.
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const;

 private:
  void ask_for_graph(const Layout& layout, std::vector<Support>& refusals) const;
  void ask_communicators(const Layout& layout, const Placement& placement, bool on_this_machine,
                         std::vector<Support>& refusals) const;
  /// By table, the axes of more than one rank; tables without any are left out.
  std::map<std::string, std::vector<std::string>> axes_served(const Layout& layout) const;

  const config::RunConfig& run_;
  plugin::Instance<Model> model_;
  plugin::Instance<Scheduler> scheduler_;
  plugin::Instance<KernelSet> kernels_;
  plugin::Instance<Optimizer> optimizer_;
  std::map<std::string, plugin::Instance<CommBackend>> backends_; // by table: "comm", "comm.tensor"...
};

PipelineShape pipeline_shape(const config::RunConfig& run);
/// Scattered where the run asks for it and there are tensor ranks to scatter over.
schedule::Boundaries boundaries(const config::RunConfig& run);
Layout layout_of(const config::RunConfig& run);
/// What its kernel set, or its device, refuses: told as theirs.
Support of_kernels(const config::RunConfig& run, const Support& refusal);

} // namespace triax::train
