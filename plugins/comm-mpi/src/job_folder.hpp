// SPDX-License-Identifier: Apache-2.0
// A folder in /dev/shm for what Open MPI's processes leave if they are killed: the shared memory of their messages, and
// their session folders. Without it, both are in shared folders under names that only Open MPI knows.
//
// Threads: one. Ownership: owns the folder and its content, and removes them. Blocking: until the folder of a job that
// has ended is removed. Errors: none; without a folder, Open MPI uses its own folders.
#pragma once

#include <filesystem>
#include <string>

namespace triax::comm_mpi {

/// The name of a job begins with this.
inline constexpr const char* kJobPrefix = "triax-mpi-";

class JobFolder {
 public:
  /// Removes the folders of jobs whose launcher was killed, then makes that of a job. `job`: a name that is unique on
  /// this machine.
  explicit JobFolder(const std::string& job);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  /// Empty if there is none.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int locked_ = -1; // while the job exists; the kernel unlocks it when this process ends
};

} // namespace triax::comm_mpi
