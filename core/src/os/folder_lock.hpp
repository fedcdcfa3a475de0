// SPDX-License-Identifier: Apache-2.0
// Locks a run's folder, because two runs at a time would write to the same metrics file.
//
// Ownership: owns a descriptor; the lock ends with it, also if the process is killed. Errors: Error with the folder, if
// another run has it or it cannot be locked.
#pragma once

#include <filesystem>

namespace triax::os {

class FolderLock {
 public:
  /// Throws Error if another run holds the folder.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// The folder's path now: where it was moved to, if it was moved. If it was deleted, a path that does not exist.
  std::filesystem::path folder() const;

 private:
  std::filesystem::path path_; // when it was locked
  int descriptor_;
};

/// Whether a process of this machine holds the folder, as far as /proc/locks shows. Does not lock it.
bool is_locked(const std::filesystem::path& folder);

} // namespace triax::os
