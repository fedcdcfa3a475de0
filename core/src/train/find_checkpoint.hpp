// SPDX-License-Identifier: Apache-2.0
// Finds checkpoints by what a user names: a checkpoint, a run's folder, its TOML, or a folder of checkpoints.
//
// Blocking: reads the TOML, and loads the scheduler that it names. Errors: CheckpointError with the path and the next
// step.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "triax/error.hpp"

namespace triax::train {

/// A name that leads to no checkpoint.
class CheckpointError final : public Error {
 public:
  CheckpointError(ErrorCode code, const std::string& message, const std::string& where = {},
                  const std::string& hint = {})
      : Error(message, where, hint), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

struct RunCheckpoints {
  std::filesystem::path folder;
  std::vector<checkpoint::FoundCheckpoint> found; // complete, oldest first; at least one
  std::vector<std::filesystem::path> incomplete;
};

/// `run`: a run's folder, its TOML, or a folder that has checkpoints. Throws CheckpointError if there are none.
RunCheckpoints find_checkpoints(const std::filesystem::path& run);

/// `path`: a checkpoint, or what find_checkpoints() takes, for the newest checkpoint. Does not read the manifest.
/// `others`: what else the caller accepts, for the next step of an error (", or ...").
std::filesystem::path find_checkpoint(const std::filesystem::path& path, const std::string& others = {});

} // namespace triax::train
