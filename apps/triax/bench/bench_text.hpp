// SPDX-License-Identifier: Apache-2.0
// Lines, cells and JSON fields that both subcommands of `triax bench` print.
//
// Threads: any. Blocking: machine_line() reads /proc.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/sides.hpp"

namespace triax::app {

/// "machine  AMD EPYC, 2 cores, load 0.4"
std::string machine_line();
/// "A        comm-ucx 0.1.0, wait = "spin"; /usr/lib/..."
std::string side_line(const std::string& label, const bench::Side& side);

/// A right-aligned cell of a table, with a space in front.
std::string cell(const std::string& value, int width = 10);
/// "5.21", "581.5"
std::string microseconds(double seconds);

/// The columns about the ratio of two sides.
std::string ratio_heading();
std::string ratio_cells(const compare::Ratio& ratio);
inline constexpr const char* kRatioLegend =
    "B/A: time of B / time of A. faster: the side that is faster by more than half a percent, with a confidence of 99 "
    "%; -: none is shown.";

nlohmann::ordered_json side_json(const bench::Side& side);

} // namespace triax::app
