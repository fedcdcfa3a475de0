// SPDX-License-Identifier: Apache-2.0
// Prints what `triax bench comm` measures: a table as it grows, or one JSON object at the end.
//
// Threads: one at a time. Blocking: writes to standard output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/comm_plan.hpp"
#include "bench/side_flags.hpp"
#include "bench/side_plugins.hpp"

namespace triax::app {

class CommReport {
 public:
  CommReport(const bench::CommPlan& plan, const bench::RankMode& mode, const SideFlags& flags);

  /// Prints the machine, the sides and the heading.
  void begin();
  void add(const bench::SizeResult& result);
  /// Prints what the columns mean, or the object. Returns the exit status.
  int end() const;

 private:
  bool compares() const { return plan_.sides.size() == 2; }
  double bandwidth(const bench::SizeResult& result, std::size_t side) const;
  std::string row_of_one(const bench::SizeResult& result) const;
  std::string row_of_two(const bench::SizeResult& result) const;
  std::string json() const;

  const bench::CommPlan& plan_;
  const bench::RankMode mode_;
  const SideFlags& flags_;
  const double overhead_s_;
  std::vector<bench::SizeResult> results_;
};

} // namespace triax::app
