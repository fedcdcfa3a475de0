// SPDX-License-Identifier: Apache-2.0
// MPI in this process. A process has one MPI rank, and initialises MPI once: at the first call, and until it ends.
//
// Threads: the rank's main thread. Blocking: the first call, until all processes of the job have called it. Errors:
// Error if MPI cannot be initialised, or was started for other processes than the run's ranks.
#pragma once

#include <mpi.h>

#include <string>

namespace triax::comm_mpi {

struct MpiProcess {
  int rank = 0, size = 1;
  int tag_bits = 15; // of MPI_TAG_UB: tags are below 2^tag_bits
};

/// `world`: ranks of the run.
const MpiProcess& mpi_process(int world);

/// MPI still uses buffers of this process, which may be freed: it must not progress again, also not in MPI_Finalize.
void leave_unfinalized() noexcept;

/// "MPI_ERR_TRUNCATE: message truncated". Static storage.
const char* error_text(int code) noexcept;

} // namespace triax::comm_mpi
