// SPDX-License-Identifier: Apache-2.0
#include "os/folder_access.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "os/errno_text.hpp"
#include "triax/text.hpp"

namespace triax::os {

namespace {

/// Whether the folder is on a virtual file system of the kernel: the superuser has write permission there, but cannot
/// create files.
bool takes_no_files(const std::filesystem::path& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return false; // the access check below reports the error
  switch (static_cast<unsigned long>(status.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
      return true;
    default:
      return false;
  }
}

} // namespace

std::string why_not_writable(const std::filesystem::path& folder) {
  std::filesystem::path nearest = folder; // the deepest folder of the path that exists
  struct stat status {};
  while (::stat(nearest.c_str(), &status) != 0) {
    const int why = errno;
    if (why == ENOENT && ::lstat(nearest.c_str(), &status) == 0) {
      if (S_ISLNK(status.st_mode)) return text("{} is a dangling symbolic link", nearest);
      continue; // another process has created it since: ranks of a run create the run's folder
    }
    const bool above = (why == ENOENT || why == ENOTDIR) && nearest.has_relative_path() && nearest != ".";
    if (!above) return text("{}: {}", nearest, errno_text(why));
    nearest = nearest.has_parent_path() ? nearest.parent_path() : "."; // the path was relative
  }
  if (!S_ISDIR(status.st_mode)) return text("{} is a file, not a folder", nearest);
  if (takes_no_files(nearest))
    return text("{} is part of a kernel file system, where files cannot be created", nearest);
  if (::faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  if (errno == ENOENT) return why_not_writable(folder); // another process has removed it since
  return text("{}: {}", nearest, errno_text());
}

std::string why_not_creatable(const std::filesystem::path& file) {
  return why_not_writable(file.has_parent_path() ? file.parent_path() : ".");
}

} // namespace triax::os
