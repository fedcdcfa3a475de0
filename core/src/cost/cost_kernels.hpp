// SPDX-License-Identifier: Apache-2.0
// A kernel set that adds up the cost of its calls and computes nothing. Layers run on it with views without data.
//
// Threads: one at a time. Ownership: borrows the costs.
#pragma once

#include <utility>

#include "cost/operation_cost.hpp"

namespace triax::cost {

class CostKernels final : public KernelSet {
 public:
  explicit CostKernels(const OperationCost& costs) : costs_(costs) {}

  /// The sum since the last take().
  OperationTime take() { return std::exchange(sum_, {}); }

  DeviceKind device_kind() const noexcept override { return DeviceKind::sim; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall&) const override { return {}; }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device&) override {}
  bool computes() const noexcept override { return false; }

 protected:
  void run(const OpCall& call, const OpContext&) override { sum_ += costs_.of(call); }

 private:
  const OperationCost& costs_;
  OperationTime sum_;
};

} // namespace triax::cost
