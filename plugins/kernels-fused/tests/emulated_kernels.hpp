// SPDX-License-Identifier: Apache-2.0
// A kernel set with attention only, which runs the kernels' source on the host (host_machine.hpp).
//
// Threads: one. Ownership: owns nothing. Blocking: computes in the call. Errors: Error, as for HostMachine.
#pragma once

#include "attention_plan.hpp"
#include "triax/kernels.hpp"

namespace triax::kernels_fused {

class EmulatedKernels final : public KernelSet {
 public:
  /// `seed` decides what the source leaves open, such as the order of threads.
  explicit EmulatedKernels(std::uint32_t seed = 1) : seed_(seed) {}
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device&) override {}

 protected:
  void do_attention_fwd(const AttentionFwd& args, const OpContext& context) override;
  void do_attention_bwd(const AttentionBwd& args, const OpContext& context) override;

 private:
  std::uint32_t seed_;
};

} // namespace triax::kernels_fused
