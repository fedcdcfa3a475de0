// SPDX-License-Identifier: Apache-2.0
// A communicator: one member's part of it.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "gpu_stand_in/runtime.hpp"
#include "segment.hpp"

namespace triax::gpu_stand_in {

// A call that is refused. The message is printed, and is what ncclGetLastError() returns.
struct NcclError : std::runtime_error {
  NcclError(ncclResult_t error, const std::string& message) : std::runtime_error(message), result(error) {}
  ncclResult_t result;
};

// Reports once if a wait takes longer than TRIAX_GPU_NCCL_REPORT_S.
class WaitReport {
 public:
  // "NCCL: `what` waits for 60.0 s`missing`".
  void check(const std::string& what, const std::function<std::string()>& missing);

 private:
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  bool is_reported_ = false;
};

struct Communicator {
  std::string name; // of the segment
  int rank = 0, size = 1, device = 0;
  bool is_concurrent = false; // few blocks: others of the device run beside it
  std::atomic<Segment*> segment = nullptr;
  std::atomic<ncclResult_t> state = ncclInProgress;
  std::atomic<bool> aborted = false;
  std::atomic<int> calls = 0;    // enqueued, and not done
  std::atomic<int> captured = 0; // groups of calls in CUDA graphs that exist
  std::atomic<bool> is_finalized = false;
  int splits = 0;

  // Of the call that runs.
  std::atomic<bool> is_busy = false; // a call runs: others wait, whatever their streams are
  std::uint64_t barriers = 0;
  std::array<std::uint64_t, kMaxMembers> sent{}, received{}; // chunks

  // A member failed, or this one aborted. Aborts are local, as NCCL's: others do not learn of them.
  bool is_over() const {
    const Segment* shared = segment;
    return aborted || (shared && shared->failed != 0);
  }
  // A member will not come to where all meet.
  bool is_broken() const { return is_over() || segment.load()->left != 0; }
  Member& own() { return segment.load()->members[rank]; }
  std::uint64_t identity() const { return std::hash<std::string>()(name) | 1; }
  std::string text() const; // "communicator /x, rank 0 of 2"

  // Begins a barrier; is_passed() when all members have come.
  void arrive() { own().arrived.store(++barriers, std::memory_order_release); }
  bool is_passed() const;
  // The state of all members is ncclRemoteError. Calls that run end by each member's own abort.
  void fail(const std::string& why);
  // This member is gone: its process may end.
  void leave();
  // Notes members whose process has ended.
  void check_members();
  // NCCL ends a communicator only when no CUDA graph contains its calls. Also false while such a graph runs.
  bool may_end() const { return captured == 0; }
  // Waits until may_end(), and reports a long wait of `call`.
  void wait_for_graphs(const std::string& call) const;
  // Waits until all members have opened the segment. In a separate thread.
  void join();
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

// Throws NcclError for a handle that is not a communicator's.
CommunicatorPtr find_communicator(ncclComm_t handle);
ncclComm_t add_communicator(CommunicatorPtr communicator);
void remove_communicator(ncclComm_t handle);
// A live communicator of this device by Communicator::identity(), or null.
CommunicatorPtr find_communicator_of(int device, std::uint64_t identity);

// Runs the body of a call.
ncclResult_t nccl_call(const char* name, const std::function<void()>& body);

} // namespace triax::gpu_stand_in
