// SPDX-License-Identifier: Apache-2.0
// NCCL's rules without NCCL: a table of its calls that moves memory of the fake CUDA device between ranks that are
// threads. Calls run as kernels on streams. What would hang or corrupt real NCCL is recorded as a violation, and
// becomes the asynchronous error of the communicators involved.
//
// A kernel begins when its stream reaches it and the previous kernel has completed: of its communicator, or of its GPU
// where NCCL guarantees no more. It ends when all kernels that it matches have begun. Violations are: members that call
// different collectives, types, counts, operations or roots; transfers of different types or counts; cyclic waits
// through the call order of communicators or a missing group; use of a communicator during its creation or after its
// end; its end with unmatched transfers; its abort by a thread with another GPU; host memory. A hang without a
// communicator to blame lasts, as in NCCL, until an abort. An abort returns when the kernels have left their streams. A
// split writes its communicator when it completes or its parent is aborted.
//
// Threads: any; a rank's thread calls enter() first. Ownership: reset() discards everything; call it only when nothing
// runs. Blocking: only comm_abort, as with NCCL's nonblocking communicators; kernels block their streams' threads.
// Errors: NCCL results.
#pragma once

#include <string>
#include <vector>

#include "api.hpp"

namespace triax::test {

const triax::comm_nccl::NcclApi& fake_nccl();

/// What NCCL knows about the process, for the calling thread's rank.
struct FakeProcess {
  int rank = 0;
  std::string gpu;
  int version = NCCL_VERSION_CODE;
};
void enter(FakeProcess process);

/// Rules for all ranks, until the next reset().
struct FakeRules {
  bool one_kernel_a_gpu = true; // at a time, in the order of the calls
  int polls = 0;                // least number of ncclInProgress results during creation
  int split_polls = 0;          // the same for a split, after all members have called it
};
void reset(const FakeRules& rules = {});

/// The violations so far.
std::vector<std::string> violations();

/// Sets the asynchronous error of all communicators of a rank.
void fail_later(int rank, ncclResult_t result, std::string why);
/// Makes the next call with this name (such as "ncclAllReduce") of a rank fail at once.
void fail_next(int rank, std::string call, ncclResult_t result, std::string why);
/// Simulates the end of the rank's process: its kernels stop, and its peers get a connection error.
void die(int rank);

/// Counts of calls, for effects that are not visible otherwise.
struct FakeCounts {
  int communicators = 0, splits = 0, aborts = 0, destroyed = 0, registered = 0, deregistered = 0;
  int late_connections = 0; // calls that waited for a peer to connect
  int alive = 0;            // communicators that have not ended
  std::vector<std::string> variables;
};
FakeCounts counts();

} // namespace triax::test
