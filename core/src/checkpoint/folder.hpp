// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: folders step-00000200 in one folder. A checkpoint is written in a hidden folder, and
// renamed when it is complete; it is complete if its manifest is there.
//
// Threads: any, one at a time per folder. Ownership: none. Blocking: file operations, and waits for the disk. Errors:
// Error with the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax::checkpoint {

/// "step-00000200"
std::string folder_name(std::int64_t step);
/// "weights-00003.safetensors": what rank 3 saves of the weights.
std::string file_name(std::string_view content, int rank);
/// The step in a folder's name; empty for other names.
std::optional<std::int64_t> step_of(std::string_view folder_name);

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
};
/// The complete checkpoints in `dir`, oldest first. Empty if there is no such folder; throws Error if it cannot be
/// read.
std::vector<FoundCheckpoint> checkpoints_in(const std::filesystem::path& dir);
/// The next step if files of the checkpoint in `folder` are damaged: restore it, or continue from the one before.
std::string damaged_hint(const std::filesystem::path& folder);
/// Folders in `dir` that have the name of a checkpoint and no manifest, such as one that was copied in part.
std::vector<std::filesystem::path> incomplete_in(const std::filesystem::path& dir);

/// Where a checkpoint of this step is written before it is complete. `attempt` distinguishes runs.
std::filesystem::path partial_folder(const std::filesystem::path& dir, std::int64_t step, const std::string& attempt);
/// Removes what earlier runs have not completed or not quite removed. A checkpoint whose replacement was interrupted
/// gets its name back.
void remove_leftovers(const std::filesystem::path& dir);
/// Makes the checkpoint visible. A complete checkpoint of the same step, which a run that has gone back saves again, is
/// replaced and removed: in one call, if the file system can exchange names (NFS cannot). Another folder of the name is
/// renamed first.
void commit(const std::filesystem::path& partial, const std::filesystem::path& dir, std::int64_t step);
/// Removes all complete checkpoints but the newest `keep`, and those whose step is a multiple of `keep_every` (0:
/// none). Returns the names of those that it has removed.
std::vector<std::string> remove_old(const std::filesystem::path& dir, std::int64_t keep, std::int64_t keep_every);

} // namespace triax::checkpoint
