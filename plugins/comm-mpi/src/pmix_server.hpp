// SPDX-License-Identifier: Apache-2.0
// A PMIx server, which MPI's processes need in the program that starts them. It gives each its rank and passes on what
// they publish at their start. Triax's launcher has it, so that no mpirun is needed on one machine.
//
// Threads: one; the server's own thread answers. Ownership: at most one per process, which backends share. Blocking:
// shortly. Errors: Error.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "job_folder.hpp"
#include "triax/log.hpp"

namespace triax::comm_mpi {

class PmixServer {
 public:
  /// The server of this process, for this number of ranks. `log` gets what the processes report; it must outlive the
  /// server, and be safe to use from another thread.
  static std::shared_ptr<PmixServer> shared(int ranks, Log& log);
  PmixServer(int ranks, Log& log);
  ~PmixServer();
  PmixServer(const PmixServer&) = delete;
  PmixServer& operator=(const PmixServer&) = delete;

  /// The environment variables that the process of a rank needs.
  std::vector<std::pair<std::string, std::string>> variables(int rank) const;

 private:
  const std::string namespace_; // of the job, for PMIx
  const JobFolder folder_;
};

} // namespace triax::comm_mpi
