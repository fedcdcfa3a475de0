// SPDX-License-Identifier: Apache-2.0
// A kernel set that adds up the cost of its calls and computes nothing. Layers run on it with views without data. It
// also asks whether another kernel set supports the calls.
//
// Threads: one at a time. Ownership: borrows the costs and `asked`. Errors: those of `asked`.
#pragma once

#include <algorithm>
#include <utility>

#include "cost/layer_cost.hpp"
#include "cost/operation_cost.hpp"

namespace triax::cost {

class CostKernels final : public KernelSet {
 public:
  CostKernels(const OperationCost& costs, const SupportsCall& asked) : costs_(costs), asked_(asked) {}

  /// The sum since the last take().
  OperationTime take() { return std::exchange(sum_, {}); }
  /// Why the other kernel set does not support a call; each reason once.
  const Refusals& refusals() const { return refusals_; }

  DeviceKind device_kind() const noexcept override { return DeviceKind::sim; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall&) const override { return {}; }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device&) override {}
  bool computes() const noexcept override { return false; }

 protected:
  void run(const OpCall& call, const OpContext&) override {
    sum_ += costs_.of(call);
    if (!asked_) return;
    for (const Refusal& refusal : asked_(call))
      if (std::ranges::find(refusals_, refusal) == refusals_.end()) refusals_.add(refusal);
  }

 private:
  const OperationCost& costs_;
  const SupportsCall& asked_;
  OperationTime sum_;
  Refusals refusals_;
};

} // namespace triax::cost
