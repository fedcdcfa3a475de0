// SPDX-License-Identifier: Apache-2.0
// Optional interface of communicator backends: what the processes of ranks need in their environment to find each
// other, when Triax's own launcher starts them. A library with a separate launcher (MPI) needs it.
//
// Threads: one, of the launcher's process, which has no ranks. Ownership: the backend's. Blocking: serve() may,
// shortly. Errors: Error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/export.hpp"

namespace triax {

/// Optional interface of backends: takes part when the launcher starts ranks as processes.
class TRIAX_API ProcessStart {
 public:
  static constexpr std::string_view kExtension = "triax.process_start";

  /// Called once, before the first rank is started: `ranks` processes of this machine will start. The backend must
  /// serve them until it is destroyed, which happens when all have ended. start() and join() are not called.
  virtual void serve(int ranks) = 0;
  /// Variables for the process of a rank, which otherwise has the launcher's environment: name and value.
  virtual std::vector<std::pair<std::string, std::string>> variables(int rank) = 0;

 protected:
  ~ProcessStart() = default;
};

} // namespace triax
