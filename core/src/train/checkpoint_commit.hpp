// SPDX-License-Identifier: Apache-2.0
// Completes checkpoints on rank 0: collects what all ranks have written, through the job's store, and makes the
// checkpoint visible once all of it is on the disk.
//
// Threads: the writer's thread of rank 0; failed() and newest(): any, while nothing is being written. Ownership:
// borrows its arguments. Blocking: complete() waits for all ranks, and for the disk. Errors: complete() throws the
// store's after an abort; all others are logged and counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "config/run_config.hpp"
#include "os/folder_lock.hpp"
#include "os/followed_folder.hpp"
#include "triax/communicator.hpp"
#include "triax/layout.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// The files that a rank has written, or the error why it could not.
struct PartOrError {
  checkpoint::SavedPart part;
  /// Checksums of the texts that plugins saved, by "model", "kernels", "optimizer".
  std::map<std::string, std::string> plugins;
  std::string error; // empty: none
};

std::map<std::string, std::string> checksums(const std::map<std::string, std::string>& texts);

/// Sends rank 0 what this rank has written. `save`: number of the save in this start of the run, from 1: after a
/// rewind, a step is saved again.
void publish(Store& store, std::int64_t save, int rank, const PartOrError& part);

/// The folder of a save, which rank 0 chooses, because hosts may see a moved folder differently. Empty: none of the
/// ranks is to write.
void publish_folder(Store& store, std::int64_t save, const std::filesystem::path& folder);
std::filesystem::path await_folder(Store& store, std::int64_t save);

/// A name that no other run has.
std::string new_attempt();

class CheckpointCommit {
 public:
  /// Removes what an earlier run has not completed.
  CheckpointCommit(const config::RunConfig& run, const Layout& layout, std::int64_t sequence, Store& store, Log& log);

  /// Sets the content of the corpora that the run has read, for the manifests of later calls to complete().
  void set_data(checkpoint::DataContent data) { data_ = std::move(data); }
  /// Call it before anything is written. If the run's folder was removed, its name is used again, unless another run
  /// has it: then throws Error, because the checkpoints of that run must not be removed as old ones of this.
  void own_folder(os::FollowedFolder& folder);
  void complete(const std::filesystem::path& partial, std::int64_t save, const checkpoint::TrainingState& state,
                const PartOrError& own, bool removes_old, const std::atomic<bool>& stop);
  /// While complete() waits for the parts of other ranks. Any thread.
  bool awaits_others() const { return awaits_others_; }
  std::int64_t failed() const { return failed_; } // checkpoints
  /// The name of the newest complete checkpoint that this object has made.
  const std::string& newest() const { return newest_; }

 private:
  std::vector<std::string> reports_of_others(std::int64_t save);
  checkpoint::SavedPart merged(const std::filesystem::path& partial, const PartOrError& own,
                               std::span<const std::string> others) const;
  void compare_plugins(const PartOrError& own, const PartOrError& other, int rank) const;
  checkpoint::Manifest manifest(const checkpoint::TrainingState& state, checkpoint::SavedPart content) const;

  const config::RunConfig& run_;
  const Layout& layout_;
  const std::int64_t sequence_;
  Store& store_;
  Log& log_;
  std::atomic<bool> awaits_others_{false};
  std::int64_t failed_ = 0;
  std::string newest_;
  checkpoint::DataContent data_;
  std::unique_ptr<os::FolderLock> lock_; // of a folder that was made again
};

} // namespace triax::train
