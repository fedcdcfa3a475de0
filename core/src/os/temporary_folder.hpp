// SPDX-License-Identifier: Apache-2.0
// A folder that is removed with the process, however that ends: a second process waits for the end, and removes it.
//
// Threads: created in a process without other threads. Ownership: owns the folder and the process that removes it.
// Blocking: the destructor, until the folder is removed. Errors: the constructor throws Error if the folder or the
// process cannot be created.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace triax::os {

class TemporaryFolder {
 public:
  /// In the system's folder for temporary files (TMPDIR), which only this user can read. `prefix`: of its name.
  explicit TemporaryFolder(const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int alive_ = -1; // pipe that is open as long as this process lives
  pid_t owner_ = -1, remover_ = -1;
};

} // namespace triax::os
