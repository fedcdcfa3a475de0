// SPDX-License-Identifier: Apache-2.0
// Prints what `triax bench kernels` measures: a table as it grows, or one JSON object at the end.
//
// Threads: one. Blocking: writes to standard output.
#pragma once

#include <string>
#include <vector>

#include "bench/kernel_measure.hpp"
#include "bench/side_flags.hpp"

namespace triax::app {

class KernelsReport {
 public:
  KernelsReport(const bench::KernelPlan& plan, const bench::KernelMeasurement& measurement, const SideFlags& flags);

  /// Prints the machine, the sides, the rates of their devices and the heading.
  void begin();
  void add(const bench::KernelResult& result);
  /// Prints what the columns mean, or the object. Returns the exit status.
  int end() const;

 private:
  bool compares() const { return plan_.sides.size() == 2; }
  std::string device_line(const std::string& label, std::size_t side) const;
  double roofline(const bench::KernelResult& result, std::size_t side) const;
  std::string side_cells(const bench::KernelResult& result, std::size_t side) const;
  std::string json() const;

  const bench::KernelPlan& plan_;
  const bench::KernelMeasurement& measurement_;
  const SideFlags& flags_;
  std::vector<bench::KernelResult> results_;
};

} // namespace triax::app
