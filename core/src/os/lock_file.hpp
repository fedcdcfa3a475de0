// SPDX-License-Identifier: Apache-2.0
// Locks a name that files are about to have, with a lock file beside it.
//
// Ownership: owns a descriptor and the lock file, which its end removes, also from a folder that was moved. A lock file
// that a killed process left does not lock. Errors: Error with the lock file if it cannot be created or locked.
#pragma once

#include <filesystem>
#include <string>

#include "triax/error.hpp"

namespace triax::os {

/// Next steps for the user.
struct LockFileHints {
  std::string not_created, not_locked;
};

class LockFile {
 public:
  /// Throws `held` if another process has the lock.
  LockFile(std::filesystem::path file, const Error& held, const LockFileHints& hints);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  /// Before the process ends without destructors. Any thread, while the object exists.
  void remove_file() const;

 private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
};

} // namespace triax::os
