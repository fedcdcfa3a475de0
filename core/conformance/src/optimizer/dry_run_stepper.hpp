// SPDX-License-Identifier: Apache-2.0
// Dry runs of the shards of a Stepper, in another object of its optimizer: views without data, a device without memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "stepper.hpp"

namespace triax::conformance {

struct DryRunSetup {
  DeviceKind device = DeviceKind::host;
  void* data = nullptr;           // of all views and of the scratch memory
  void* scalars = nullptr;        // of StepScalars; a dry run does not read it
  const Groups* groups = nullptr; // null: none
};

class DryRunStepper {
 public:
  /// The Stepper and what the setup refers to must outlive it.
  DryRunStepper(const Stepper& like, const DryRunSetup& setup);

  /// Steps all shards, in one call.
  void step(KernelSet& kernels) { call(shards_, kernels); }
  void call(std::span<const ParameterShard> shards, KernelSet& kernels);
  std::span<const ParameterShard> shards() const { return shards_; }

 private:
  TensorView without_data(const TensorView& view) const;

  const Stepper& like_;
  const DryRunSetup setup_;
  const Groups no_groups_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  const Object<Optimizer> optimizer_;
  std::vector<std::vector<TensorView>> states_;
  std::vector<ParameterShard> shards_;
};

} // namespace triax::conformance
