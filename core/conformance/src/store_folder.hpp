// SPDX-License-Identifier: Apache-2.0
// The folder of the store that ranks of one check share, if they are processes.
//
// Ownership: removes the folder. If this process is killed, the process that runs the check removes it; if that is
// killed too, the next folder that is created. A folder in use is locked. Errors: Error if it cannot be created.
#pragma once

#include <string>

#include "os/descriptor.hpp"
#include "triax/conformance/report.hpp"

namespace triax::conformance {

class StoreFolder {
 public:
  /// Says in `shared` where it is.
  explicit StoreFolder(Activities& shared);
  ~StoreFolder();
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  Activities& shared_;
  std::string path_;
  os::Descriptor lock_{-1}; // processes that are forked later have it too
};

} // namespace triax::conformance
