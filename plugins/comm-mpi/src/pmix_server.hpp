// SPDX-License-Identifier: Apache-2.0
// What MPI's processes need of the program that starts them: a PMIx server, which gives each its rank and passes on
// what they publish at their start. Triax's launcher has it, so that no mpirun is needed on one machine.
//
// Threads: one; the server's own thread answers. Ownership: at most one per process, which backends share. Blocking:
// shortly. Errors: Error.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace triax::comm_mpi {

class PmixServer {
 public:
  /// The server of this process, for this number of ranks.
  static std::shared_ptr<PmixServer> shared(int ranks);
  explicit PmixServer(int ranks);
  ~PmixServer();
  PmixServer(const PmixServer&) = delete;
  PmixServer& operator=(const PmixServer&) = delete;

  /// What the process of a rank needs in its environment.
  std::vector<std::pair<std::string, std::string>> variables(int rank) const;
};

} // namespace triax::comm_mpi
