// SPDX-License-Identifier: Apache-2.0
// Names of the files that a run writes to its folder. log.metrics must not be one of them.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/rank_files.hpp"

namespace triax::config {

inline constexpr const char *kResolvedFile = "resolved.toml", *kFailureFile = "failure.json",
                            *kFailedStartFile = "failed-start.json", *kLauncherLog = "launcher.log",
                            *kCheckpointFolder = "checkpoints", *kMemoryFile = "memory.json",
                            *kTensorBoardFolder = "tensorboard";

/// Whether a run writes a file of this name to its folder, besides its metrics.
inline bool is_run_file(std::string_view name) {
  constexpr std::string_view kTemporary = ".tmp"; // os/replace_file.hpp
  if (name.ends_with(kTemporary)) name.remove_suffix(kTemporary.size());
  constexpr std::array kNames = {kResolvedFile,     kFailureFile, kFailedStartFile,  kLauncherLog,
                                 kCheckpointFolder, kMemoryFile,  kTensorBoardFolder};
  return std::ranges::find(kNames, name) != kNames.end() || kRankLogs.has(name) || kRankTimelines.has(name);
}

} // namespace triax::config
