// A kernel set of attention alone, which runs the kernels' text on the host (host_machine.hpp).
//
// Threads: one. Ownership: owns nothing. Blocking: a call computes. Errors: Error, as the host machine's.
#pragma once

#include "attention_plan.hpp"
#include "triax/kernels.hpp"

namespace triax::fused {

class EmulatedKernels final : public KernelSet {
 public:
  /// `seed` decides what the kernels' text leaves open.
  explicit EmulatedKernels(std::uint32_t seed = 1) : seed_(seed) {}
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Support supports(const KernelRequest&) const override { return Support::yes(); }
  Support supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device&) override {}

 protected:
  void do_attention_fwd(const AttentionFwd& args, const OpContext& context) override;
  void do_attention_bwd(const AttentionBwd& args, const OpContext& context) override;

 private:
  std::uint32_t seed_;
};

} // namespace triax::fused
