// SPDX-License-Identifier: Apache-2.0
#include "os/followed_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace triax::os {

FollowedFolder::FollowedFolder(std::filesystem::path folder) : path_(std::move(folder)) {
  reopen();
}

FollowedFolder::~FollowedFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FollowedFolder::reopen() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool FollowedFolder::is_at(const std::filesystem::path& path) const {
  struct stat own {
  }, there{};
  return descriptor_ >= 0 && ::fstat(descriptor_, &own) == 0 && ::stat(path.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/// As far as the kernel knows: a network file system may not follow what another host has moved.
std::filesystem::path FollowedFolder::moved_to() const {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor_), unknown);
}

std::filesystem::path FollowedFolder::now() const {
  if (is_at(path_)) return path_;
  const std::filesystem::path moved = moved_to();
  return is_at(moved) ? moved : path_;
}

bool FollowedFolder::is_gone() const {
  return !is_at(path_) && !is_at(moved_to());
}

} // namespace triax::os
