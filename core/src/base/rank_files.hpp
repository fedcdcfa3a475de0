// SPDX-License-Identifier: Apache-2.0
// Names of the files that each rank of a run writes to the run's folder.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace triax {

/// Files of one kind: "rank-0.log", "rank-1.log".
struct RankFiles {
  std::string_view prefix, suffix;

  std::string of(int rank) const { return std::string(prefix).append(std::to_string(rank)).append(suffix); }
  bool has(std::string_view name) const {
    if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
      return false;
    const std::string_view number = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    return std::ranges::all_of(number, [](char digit) { return digit >= '0' && digit <= '9'; });
  }
};

inline constexpr RankFiles kRankLogs{"rank-", ".log"}, kRankTimelines{"timeline-rank-", ".json"};

} // namespace triax
