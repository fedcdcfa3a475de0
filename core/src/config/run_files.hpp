// SPDX-License-Identifier: Apache-2.0
// Names of the files that a run writes to its folder. log.metrics must not be one of them.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace triax::config {

inline constexpr const char *kResolvedFile = "resolved.toml", *kFailureFile = "failure.json",
                            *kFailedStartFile = "failed-start.json", *kLauncherLog = "launcher.log",
                            *kCheckpointFolder = "checkpoints";

/// Whether `name` is "rank-3.log" for the prefix "rank-" and the suffix ".log".
inline bool is_numbered_name(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
    return false;
  const std::string_view number = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return std::ranges::all_of(number, [](char digit) { return digit >= '0' && digit <= '9'; });
}

inline std::string rank_log(int rank) {
  return "rank-" + std::to_string(rank) + ".log";
}

/// Whether a run writes a file of this name to its folder, besides its metrics.
inline bool is_run_file(std::string_view name) {
  constexpr std::string_view kTemporary = ".tmp"; // os/replace_file.hpp
  if (name.ends_with(kTemporary)) name.remove_suffix(kTemporary.size());
  constexpr std::array kNames = {kResolvedFile, kFailureFile, kFailedStartFile, kLauncherLog, kCheckpointFolder};
  return std::ranges::find(kNames, name) != kNames.end() || is_numbered_name(name, "rank-", ".log") ||
         is_numbered_name(name, "timeline-rank-", ".json");
}

} // namespace triax::config
