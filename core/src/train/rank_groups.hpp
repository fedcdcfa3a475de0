// SPDX-License-Identifier: Apache-2.0
// The communicators of a rank.
//
// Threads: the rank's main thread; abort() and waiting_for(): any. Ownership: owns the communicators; run, layout,
// device and trace must outlive it. Blocking: join() waits for the other ranks. Errors: Error of a plugin.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "report/step_record.hpp"
#include "train/plugins.hpp"
#include "train/recorded_traffic.hpp"
#include "train/step_trace.hpp"
#include "train/traced_communicator.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

class RankGroups {
 public:
  RankGroups(const config::RunConfig& run, const Layout& layout, int rank);

  /// One communicator for each list of axes. `trace` may be null.
  void join(RankPlugins& plugins, Device& device, std::span<const std::vector<std::string>> axes, Store& store,
            double timeout_s, StepTrace* trace);
  void register_memory(std::span<const std::span<std::byte>> blocks);
  void abort(std::string_view why) noexcept;

  const Groups& groups() const { return groups_; }
  /// Those of one axis.
  const std::vector<Communicator*>& of_axes() const { return of_axes_; }
  const std::string& plugin_of(const Group& group) const;
  /// ", waiting for all_reduce over tensor with rank 1 through comm-ucx", or empty.
  std::string waiting_for(ActionId action) const;
  /// The counters of each communicator.
  std::vector<CommStats> counted() const;
  std::vector<report::GroupTraffic> traffic(const RecordedTraffic& recorded) const;

 private:
  Communicator& add(std::unique_ptr<Communicator> joined, Device& device);

  const config::RunConfig& run_;
  const Layout& layout_;
  const int rank_;
  std::mutex mutex_; // guards all_, which abort() reads
  std::vector<std::unique_ptr<Communicator>> all_;
  std::vector<Communicator*> of_axes_;
  std::vector<std::unique_ptr<TracedCommunicator>> traced_; // wrap `all_` if there is a trace
  Groups groups_;
};

} // namespace triax::train
