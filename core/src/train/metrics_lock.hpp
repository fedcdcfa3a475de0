// SPDX-License-Identifier: Apache-2.0
// Locks the metrics file of a run: log.metrics of another run, with another folder, may name the same file.
//
// Ownership: owns the file METRICS.lock (os/lock_file.hpp). Errors: Error with the metrics file if another run has it.
#pragma once

#include <filesystem>
#include <optional>

#include "os/lock_file.hpp"

namespace triax::train {

class MetricsLock {
 public:
  /// Its folder must exist. A device or a FIFO is not locked.
  explicit MetricsLock(const std::filesystem::path& metrics);
  /// Before the process ends without destructors. Any thread, while the object exists.
  void remove_file() const {
    if (file_) file_->remove_file();
  }

 private:
  std::optional<os::LockFile> file_;
};

} // namespace triax::train
