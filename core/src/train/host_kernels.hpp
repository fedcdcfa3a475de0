// SPDX-License-Identifier: Apache-2.0
// The kernel set that updates the weights of a rank on the host, beside the one of its device (memory.offload =
// "optimizer" on a GPU).
//
// Threads: the rank's main thread. Ownership: owns kernel set, device and stream; run, layout and log must outlive it.
// Errors: Error with the plugin's message.
#pragma once

#include <memory>
#include <optional>

#include "config/run_config.hpp"
#include "executor/host_update.hpp"
#include "executor/rank_plan.hpp"
#include "executor/rank_state.hpp"
#include "plugin/loader.hpp"
#include "triax/kernels.hpp"
#include "triax/optimizer.hpp"

namespace triax::train {

/// Whether the host updates the weights of a rank whose kernel set computes on this device. On the host device, the
/// kernel set of the run does.
bool updates_on_host(const config::RunConfig& run, DeviceKind device);

/// Where the optimizer's state of such a rank is.
executor::OffloadRequest offload_request(const config::RunConfig& run, DeviceKind device);

class HostKernelSet {
 public:
  HostKernelSet(const config::RunConfig& run, const Layout& layout, int rank, int threads, Log& log);

  /// Why the host cannot update the weights of this run with such an optimizer, or none.
  Refusals refusals(const config::RunConfig& run, const OptimizerTraits& optimizer) const;
  KernelSet& kernels() const { return *kernels_; }
  /// Before the first step.
  executor::HostKernels start(const config::RunConfig& run);

 private:
  std::unique_ptr<Device> device_; // outlives kernel set and stream
  plugin::Instance<KernelSet> kernels_;
  std::unique_ptr<Stream> stream_;
};

/// Refusals of the kernel set, with the key that names it.
Refusals of_host_kernels(const config::RunConfig& run, Refusals refusals);

} // namespace triax::train
