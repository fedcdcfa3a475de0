// SPDX-License-Identifier: Apache-2.0
#include "train/metrics_lock.hpp"

#include <system_error>

namespace triax::train {

namespace fs = std::filesystem;

MetricsLock::MetricsLock(const fs::path& metrics) {
  std::error_code unknown;
  fs::path file = fs::weakly_canonical(metrics, unknown); // two names of one file share the lock
  if (unknown) file = metrics;
  if (fs::exists(file, unknown) && !fs::is_regular_file(file, unknown)) return;
  file_.emplace(file.string() + ".lock",
                Error("another run is writing this metrics file", file.string(),
                      "wait until it has ended, or choose another file with log.metrics"),
                os::LockFileHints{"make its folder writable, or choose another file with log.metrics",
                                  "choose a log.metrics on a file system with flock()"});
}

} // namespace triax::train
