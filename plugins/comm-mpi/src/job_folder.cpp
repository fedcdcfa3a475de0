// SPDX-License-Identifier: Apache-2.0
// A lock, not a process id, marks a folder as in use, because containers with separate process ids may share /dev/shm.
#include "job_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace triax::comm_mpi {

namespace {

namespace fs = std::filesystem;

constexpr const char* kShared = "/dev/shm";

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Whether the open folder still has this path: another process may have removed it before it was locked.
bool has_path(int opened, const fs::path& folder) {
  struct stat by_path {
  }, by_descriptor{};
  return ::lstat(folder.c_str(), &by_path) == 0 && ::fstat(opened, &by_descriptor) == 0 &&
         by_path.st_ino == by_descriptor.st_ino;
}

bool is_own(int opened) {
  struct stat status {};
  return ::fstat(opened, &status) == 0 && status.st_uid == ::geteuid();
}

void remove_abandoned() {
  std::error_code unreadable, kept;
  for (fs::directory_iterator entry(kShared, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    if (!entry->path().filename().native().starts_with(kJobPrefix)) continue;
    const int opened = open_folder(entry->path());
    if (opened < 0) continue;
    if (is_own(opened) && ::flock(opened, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), kept);
    ::close(opened);
  }
}

} // namespace

JobFolder::JobFolder(const std::string& job) {
  remove_abandoned();
  const fs::path path = fs::path(kShared) / job;
  constexpr int kTries = 8; // each fails only if another process removes the folder before it is locked
  for (int tries = 0; tries < kTries && path_.empty(); ++tries) {
    if (::mkdir(path.c_str(), S_IRWXU) != 0) return;
    locked_ = open_folder(path);
    if (locked_ < 0) return;
    if (::flock(locked_, LOCK_EX) == 0 && has_path(locked_, path)) {
      path_ = path;
    } else {
      ::close(locked_);
      locked_ = -1;
    }
  }
}

JobFolder::~JobFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (locked_ >= 0) ::close(locked_);
}

} // namespace triax::comm_mpi
