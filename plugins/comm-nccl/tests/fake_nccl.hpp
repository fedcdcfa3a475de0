// NCCL's rules without NCCL: a table of its calls that moves memory of the fake CUDA device between ranks that are
// threads, as kernels on their streams; what would hang or corrupt the real one is noted as a violation, and becomes
// the asynchronous error of those concerned.
//
// A kernel begins when its stream gets there and the kernel before it, of its communicator or (where NCCL promises no
// more) of its GPU, is over; it ends when all it meets have begun. Noted are: members that call different collectives,
// types, counts, operations or roots; transfers of different types or counts; calls that wait for each other round in a
// circle, by their order over communicators or for want of a group; a communicator used while it is being made, after
// its end, or ended with transfers that nobody takes; memory of the host. What has no communicator to blame hangs on,
// as NCCL would, until it is aborted. An abort comes back when the kernels have left their streams, and a split writes
// its communicator when it is through, or its parent aborted.
//
// Threads: any; a rank's thread calls enter() first. Ownership: reset() forgets everything; only where nothing runs.
// Blocking: as NCCL's nonblocking communicators, never, but for ncclCommAbort; kernels block their streams' threads.
// Errors: results.
#pragma once

#include <string>
#include <vector>

#include "api.hpp"

namespace triax::test {

const comm_nccl::NcclApi& fake_nccl();

/// What NCCL knows of the process, for the calling thread's rank.
struct FakeProcess {
  int rank = 0;
  std::string gpu;
  int version = NCCL_VERSION_CODE;
};
void enter(FakeProcess process);

/// For all ranks, until the next one.
struct FakeRules {
  bool one_kernel_a_gpu = true; // at a time, in the order of the calls
  int polls = 0;                // of a communicator being made that are answered with ncclInProgress, at least
  int split_polls = 0;          // of one being split, when all members have called
};
void reset(const FakeRules& rules = {});

/// What was done wrong so far.
std::vector<std::string> violations();

/// All communicators of a rank have this from now on as their asynchronous error.
void fail_later(int rank, ncclResult_t result, std::string why);
/// The next such call of a rank ("ncclAllReduce") fails at once.
void fail_next(int rank, std::string call, ncclResult_t result, std::string why);
/// The rank's process ends: its kernels stop, and its peers hear of a broken connection.
void die(int rank);

/// What ranks did, for what cannot be seen otherwise.
struct FakeCounts {
  int communicators = 0, splits = 0, aborts = 0, destroyed = 0, registered = 0, deregistered = 0;
  int late_connections = 0; // calls that had to wait for a peer to connect
  int alive = 0;            // communicators that have not ended
  std::vector<std::string> variables;
};
FakeCounts counts();

} // namespace triax::test
