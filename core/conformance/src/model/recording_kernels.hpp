// SPDX-License-Identifier: Apache-2.0
// A kernel set that records its calls, and lets another one compute them. Without another one it is the kernel set of a
// dry run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "triax/kernels.hpp"

namespace triax::conformance {

struct RecordedCall {
  Op op;
  double flops, bytes;
  bool operator==(const RecordedCall&) const = default;
};

/// FLOPs without the products that attention's backward repeats: it computes five, of which the forward had one.
double model_flops(const std::vector<RecordedCall>& calls);
/// Empty, or the first difference: "call 3 is linear_fwd of 64 FLOPs, must be gemm of 32 FLOPs".
std::string difference(const std::vector<RecordedCall>& got, const std::vector<RecordedCall>& expected);

class RecordingKernels final : public KernelSet {
 public:
  /// Null: nothing is computed.
  explicit RecordingKernels(KernelSet* real) : real_(real) { calls_.reserve(kReserved); }

  /// The calls since the last clear().
  const std::vector<RecordedCall>& calls() const { return calls_; }
  void clear() { calls_.clear(); }

  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}

 protected:
  void run(const OpCall& call, const OpContext& context) override {
    calls_.push_back({call.op, call.flops, call.bytes});
    if (real_) real_->issue(call, context);
  }

 private:
  static constexpr std::size_t kReserved = 4096; // calls of a pass over a small model: recording must not allocate

  KernelSet* const real_;
  std::vector<RecordedCall> calls_;
};

} // namespace triax::conformance
