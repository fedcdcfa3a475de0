// SPDX-License-Identifier: Apache-2.0
// MPI in this process. A process has one MPI rank and one lifetime of MPI: from the first user until the last one ends.
// Each user has a separate communicator, so that messages of two backends never match. Users are created in the same
// order on all ranks.
//
// Threads: the rank's main thread. Ownership: users share it. Blocking: the constructor, until all processes of the job
// have called it; the end of the last. Errors: Error if MPI cannot be initialised, or was started for other processes
// than the run's ranks.
#pragma once

#include <mpi.h>

namespace triax::comm_mpi {

class MpiProcess {
 public:
  /// `world`: ranks of the run.
  explicit MpiProcess(int world);
  ~MpiProcess();
  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// All ranks of the run. Errors are returned.
  MPI_Comm comm() const noexcept { return comm_; }
  /// The bits of MPI_TAG_UB: tags are below 2^tag_bits.
  int tag_bits() const noexcept { return tag_bits_; }
  /// MPI_Finalize would wait for ranks that are lost.
  static void leave_unfinalized() noexcept;
  /// Buffers of operations in progress may be freed: nothing in this process may call MPI any more.
  static void abandon() noexcept;
  static bool abandoned() noexcept;

 private:
  void check(int world) const;

  int rank_ = 0, size_ = 1, tag_bits_ = 15;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// "MPI_ERR_TRUNCATE: message truncated". Static storage.
const char* error_text(int code) noexcept;
/// MPI_ERR_TRUNCATE and others: an error code may say more than its class.
int error_class(int code) noexcept;

} // namespace triax::comm_mpi
