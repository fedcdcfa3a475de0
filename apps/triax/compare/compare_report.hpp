// SPDX-License-Identifier: Apache-2.0
// The result of `triax compare` for a reader, and for a program.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compare/compare_sides.hpp"
#include "os/machine.hpp"

namespace triax::app {

struct ComparisonReport {
  const LoadedSides& sides;
  const compare::Compared& compared;
  const compare::Plan& plan;
  os::Machine machine; // before the sides started
};

/// A part of a step, and the ratio of its time where both sides have it.
struct PartRow {
  std::string name;
  double a = 0, b = 0; // ms, median over the turns
  std::optional<compare::Ratio> ratio;
};

/// The whole step first. Parts that neither side has are left out.
std::vector<PartRow> part_rows(const compare::Compared& compared);

/// "comm.plugin = comm-ucx, UCX_TLS=tcp"; "no changes" if the sides are equal.
std::string side_text(const LoadedSides& sides, bool is_a);

/// One sentence; and if no difference is shown, how many rounds would show 1 %.
std::string verdict(const compare::Compared& compared);

/// "bit-equal in 203 steps", or where they differ.
std::string agreement_text(const compare::Agreement& agreement);

/// The first row is the heading, unless stated otherwise.
using TableRows = std::vector<std::vector<std::string>>;
TableRows part_table(const ComparisonReport& report);
TableRows traffic_table(const ComparisonReport& report); // in kTrafficUnit; only a heading if nothing is sent
TableRows plugin_table(const ComparisonReport& report);
TableRows number_table(const ComparisonReport& report); // without heading; empty if the models differ

/// "20 k tokens/s; 80 measured steps, 5th percentile 12 ms, 95th 15 ms"
std::string spread_text(const ComparisonReport& report, bool is_a);
std::string memory_text(const compare::SideResult& side);
std::string ms_text(double ms);
/// "20 rounds A B B A or B A A B"; of a comparison that was stopped: "7 of 20 rounds ..., then it was stopped"
std::string rounds_text(const ComparisonReport& report);

inline constexpr const char* kTrafficUnit = "in each step, sum over all ranks";
inline constexpr const char* kModelsDiffer = "the sides train different models: their losses are not compared";
inline constexpr const char* kNoParts = "the parts of a step are measured only if both sides compute on the host";

/// Explains the columns of part_table().
inline constexpr const char* kRatioNote =
    "A, B: median over the turns. B / A: mean over the rounds without the largest and the smallest fifth, so it is not "
    "the quotient of A and B. The rows after \"step\" are of the last step of each turn, which the ranks record";

std::string comparison_text(const ComparisonReport& report);
std::string comparison_json(const ComparisonReport& report);
/// A whole page (page/page.hpp).
std::string comparison_html(const ComparisonReport& report);

} // namespace triax::app
