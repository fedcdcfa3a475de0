// SPDX-License-Identifier: Apache-2.0
// Where the time of a measured step goes, on each rank: passes, the update of the weights, waits, and below them the
// calls of communicators. Several runs stand below each other, on one scale of time.
//
// Threads: pure functions. Ownership: borrows the timelines during the call. Errors: none; a step without a length has
// no figure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "page/page.hpp"
#include "report/timeline_file.hpp"

namespace triax::page {

/// Ranks of one machine: their times are of one clock.
struct StepPanel {
  std::string heading; // may be empty
  std::span<const report::RankTimeline> ranks;
};

inline constexpr std::size_t kMaxDrawnRanks = 32; // of a panel; the caption says how many are left out

std::optional<Figure> step_timeline(const std::string& title, const std::vector<StepPanel>& panels);

} // namespace triax::page
