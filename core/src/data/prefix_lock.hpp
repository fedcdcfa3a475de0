// SPDX-License-Identifier: Apache-2.0
// Locks the prefix of a dataset, because two writers at a time would use the same partial files.
//
// Ownership: owns a descriptor and the file PREFIX.lock, which its end removes. A lock file that a killed process left
// does not lock. Errors: Error with the lock file if another process holds it or it cannot be created.
#pragma once

#include <filesystem>

namespace triax::data {

class PrefixLock {
 public:
  explicit PrefixLock(const std::filesystem::path& prefix);
  ~PrefixLock();
  PrefixLock(const PrefixLock&) = delete;
  PrefixLock& operator=(const PrefixLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

} // namespace triax::data
