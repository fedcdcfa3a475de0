// SPDX-License-Identifier: Apache-2.0
// Measures kernel sets: first the rates of each device, then the operations one after another, in turns of the sides.
//
// Threads: one. Ownership: borrows the plan. Blocking: until all operations are measured. Errors: Error with set and
// operation.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "bench/kernel_plan.hpp"
#include "bench/kernel_side.hpp"

namespace triax::bench {

class KernelMeasurement {
 public:
  explicit KernelMeasurement(const KernelPlan& plan);

  /// By side. Sides on one kind of device have the same rates: the highest of both.
  const std::vector<DeviceRates>& rates() const { return rates_; }
  bool have_equal_rates() const { return sides_.size() == 2 && kinds_are_equal(); }
  /// Describes a side's device.
  std::string device(std::size_t side) const { return sides_[side].device().description(); }
  /// Calls `report` after each operation.
  void run(const std::function<void(const KernelResult&)>& report);

 private:
  bool kinds_are_equal() const;
  void measure_rates();
  DeviceRates rates_of(KernelSide& side) const;
  KernelResult measure(const std::vector<const KernelCase*>& of_sides);
  std::int64_t calls_of_turn(KernelSide& side, const KernelCase& one) const;

  const KernelPlan& plan_;
  std::deque<KernelSide> sides_;
  std::vector<DeviceRates> rates_;
};

} // namespace triax::bench
