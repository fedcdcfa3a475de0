// SPDX-License-Identifier: Apache-2.0
// One run at a time in a run's folder: two would write into each other's metrics.
//
// Threads: one. Ownership: owns a descriptor; the lock goes with it, also when the process is killed. Blocking: never.
// Errors: Error naming the folder, where another run has it or it cannot be locked.
#pragma once

#include <filesystem>

namespace triax::train {

class FolderLock {
 public:
  /// Throws Error if another run holds the folder.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

} // namespace triax::train
