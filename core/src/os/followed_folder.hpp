// SPDX-License-Identifier: Apache-2.0
// A folder of this process's own, also after another process has moved it: another folder may have its name by then.
//
// Threads: any, except with reopen(). Ownership: owns a descriptor. Blocking: file status only. Errors: none.
#pragma once

#include <filesystem>

namespace triax::os {

class FollowedFolder {
 public:
  explicit FollowedFolder(std::filesystem::path folder);
  ~FollowedFolder();
  FollowedFolder(const FollowedFolder&) = delete;
  FollowedFolder& operator=(const FollowedFolder&) = delete;

  /// Where it is: the path it had, if that is the folder still or if it was removed; else the path that it was moved
  /// to.
  std::filesystem::path now() const;
  /// It is not there: it was removed, or has never been.
  bool is_gone() const;
  /// Follows the folder that has the first path now.
  void reopen();

 private:
  bool is_at(const std::filesystem::path& path) const;
  std::filesystem::path moved_to() const;

  const std::filesystem::path path_;
  int descriptor_ = -1;
};

} // namespace triax::os
