// SPDX-License-Identifier: Apache-2.0
#include "os/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : path_(folder), descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (why == EWOULDBLOCK)
    throw Error("another run uses this folder", folder.string(),
                "wait until it has ended, or choose another folder with run.dir");
  throw Error(text("cannot lock the folder: {}", errno_text(why)), folder.string(),
              "choose another folder with run.dir");
}

FolderLock::~FolderLock() {
  close(descriptor_);
}

bool is_locked(const std::filesystem::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return false;
  // "2: FLOCK  ADVISORY  WRITE 4711 fe:01:1835025 0 EOF": the device in hexadecimal, the inode in decimal digits
  char device[32];
  std::snprintf(device, sizeof device, "%02x:%02x:", major(status.st_dev), minor(status.st_dev));
  const std::string wanted = device + std::to_string(status.st_ino);
  std::ifstream locks("/proc/locks");
  std::string line;
  while (std::getline(locks, line)) {
    std::istringstream words(line);
    std::string number, kind, mode, access, process, file;
    words >> number >> kind >> mode >> access >> process >> file;
    if (kind == "FLOCK" && file == wanted) return true;
  }
  return false;
}

std::filesystem::path FolderLock::folder() const {
  std::error_code unknown;
  std::filesystem::path now = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor_), unknown);
  return unknown ? path_ : now;
}

} // namespace triax::os
