// SPDX-License-Identifier: Apache-2.0
// Locks the prefix of a dataset, because two writers at a time would use the same partial files.
//
// Ownership: owns the file PREFIX.lock (os/lock_file.hpp). Errors: Error with the prefix if another process holds it.
#pragma once

#include <filesystem>

#include "os/lock_file.hpp"

namespace triax::data {

class PrefixLock {
 public:
  explicit PrefixLock(const std::filesystem::path& prefix);

 private:
  os::LockFile file_;
};

} // namespace triax::data
