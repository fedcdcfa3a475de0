// SPDX-License-Identifier: Apache-2.0
// A kernel set for the host with all primitives as plain loops: f32 or f64 storage, double arithmetic.
// kernels-reference is this class. Kernel sets derive from it and override the operations that they improve; link
// triax::reference_kernels.
//
// Threads: the rank's main thread. Ownership: owns no memory; it is passed in as views. Blocking: an operation runs
// inside the call. Errors: Error for types other than f32 and f64, and for an operation without its StepScalars. Each
// sum is in double and in index order, so the same call gives the same bits, and operations do not allocate. Fused
// operations are the core's defaults, so scratch_bytes() is, too: a set that overrides a primitive with one that needs
// scratch overrides scratch_bytes().
#pragma once

#include <string>
#include <utility>

#include "triax/kernels.hpp"

namespace triax::reference_kernels {

/// A kernel set with all primitives as plain loops, on the host: derive from it.
class ReferenceKernels : public KernelSet {
 public:
  /// `plugin`: name of the kernel set's plugin, for messages.
  explicit ReferenceKernels(std::string plugin = "kernels-reference") : plugin_(std::move(plugin)) {}

  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  using KernelSet::supports;
  Refusals supports(const KernelRequest& request) const override;
  void start(Device&) override {}

 protected:
#define TRIAX_OP_OVERRIDE(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_PRIMITIVES(TRIAX_OP_OVERRIDE)
#undef TRIAX_OP_OVERRIDE

 private:
  const std::string plugin_;
};

} // namespace triax::reference_kernels
