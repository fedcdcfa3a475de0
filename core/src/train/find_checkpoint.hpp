// SPDX-License-Identifier: Apache-2.0
// Finds checkpoints by what a user names: a checkpoint, a run's folder, its TOML, or a folder of checkpoints.
//
// Blocking: reads the TOML, and loads the scheduler that it names. Errors: Error with the path and the next step.
#pragma once

#include <filesystem>
#include <vector>

#include "checkpoint/folder.hpp"

namespace triax::train {

struct RunCheckpoints {
  std::filesystem::path folder;
  std::vector<checkpoint::FoundCheckpoint> found; // complete, oldest first; at least one
  std::vector<std::filesystem::path> incomplete;
};

/// `run`: a run's folder, its TOML, or a folder that has checkpoints. Throws Error if there are none.
RunCheckpoints find_checkpoints(const std::filesystem::path& run);

/// `path`: a checkpoint, or what find_checkpoints() takes, for the newest checkpoint. Does not read the manifest.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

} // namespace triax::train
