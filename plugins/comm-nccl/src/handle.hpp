// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator of this rank, from creation to its end.
//
// Threads: the rank's main thread; abort() from any thread. A lock keeps two threads out of NCCL with the same
// communicator. An abort runs on its own thread. Ownership: owns the communicator, its event and that thread. Blocking:
// wait_until_complete() calls turn() until NCCL is done; finish(), until its deadline and as long as ncclCommDestroy
// takes; the destructor, until a started abort has completed. abort() does not block. Errors: Error with NCCL's error
// text.
//
// ncclCommAbort waits until the communicator's kernels have left their streams. A kernel behind a hanging kernel of
// another communicator leaves only when that one is aborted too; a kernel of a captured CUDA graph, when the graph is
// destroyed. So start the aborts of several communicators before you wait for one, and destroy graphs before the
// communicators that they use.
//
// Communicators are nonblocking: a call that is not complete returns ncclInProgress, and the communicator must not be
// used until ncclCommGetAsyncError returns another result. This happens during creation and split, and when peers
// connect, which the join does in advance. NCCL 2.23 and newer also return it from each call that is enqueued: a thread
// of NCCL launches the kernel (ncclGroupEndInternal() in group.cc).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api.hpp"
#include "results.hpp"

namespace triax::comm_nccl {

class Handle {
 public:
  /// `name`: for errors, such as "group tensor.0".
  Handle(const NcclApi& api, std::string name);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  /// Aborts the communicator if finish() was not called, and waits for the abort.
  ~Handle();

  /// Starts the creation of the communicator; wait_until_complete() completes it.
  void begin(const ncclUniqueId& id, int size, int index, ncclConfig_t config);
  /// Starts the creation of `part`, from the members that pass the same color; all members of this communicator call
  /// it. wait_until_complete() of this communicator, and then of the part, completes it. A negative color joins no
  /// part. NCCL writes to the part from its own thread until this communicator is settled or destroyed, so the part
  /// must live until then.
  void begin_split(Handle& part, int color, int key, ncclConfig_t config);
  /// Calls turn() until NCCL has completed the previous call; turn() throws to end the wait.
  template <class Turn>
  void wait_until_complete(const char* call, Turn&& turn) {
    if (!run_to_completion(call, turn))
      throw Error("the communicator was aborted during the call", text("{}, {}", name_, call));
  }

  /// call(comm) enqueues work on a native stream, followed by the event. Returns false if the communicator was aborted.
  /// If NCCL has not completed the call, turn() runs until it has.
  template <class Launch, class Turn>
  bool launch(const char* name, cudaStream_t stream, Launch call, Turn&& turn) {
    {
      const std::lock_guard lock(mutex_);
      if (!comm_) return false;
      const ncclResult_t result = call(comm_);
      if (result == ncclSuccess) {
        api_.record_event(event_, stream);
        return true;
      }
      if (result != ncclInProgress) fail(api_, result, name, name_, comm_);
    }
    if (!run_to_completion(name, turn)) return false;
    const std::lock_guard lock(mutex_);
    if (!comm_) return false;
    api_.record_event(event_, stream);
    return true;
  }

  /// As launch(), with the calls of calls(comm) in one NCCL group, so that its transfers run concurrently.
  template <class Calls, class Turn>
  bool launch_set(cudaStream_t stream, Calls calls, Turn&& turn) {
    const auto set = [&](ncclComm_t comm) {
      ncclResult_t result = api_.group_start();
      if (result != ncclSuccess) return result;
      result = calls(comm);
      const ncclResult_t ended = api_.group_end();
      return goes_on(result) ? ended : result;
    };
    return launch("ncclGroupEnd", stream, set, turn);
  }

  /// NCCL's asynchronous state: ncclSuccess, ncclInProgress, or an error, whose text goes to `why`.
  ncclResult_t state(std::string& why);
  /// True while launched work has not completed. Replays of a captured step are not seen: the event was captured in
  /// the graph and reads as done. The code that launches the graph knows when it completes.
  bool busy();
  void register_block(void* data, std::size_t bytes);

  /// Finalizes it together with the other members until the deadline; after that, aborts it alone.
  void finish(Deadline deadline) noexcept;
  /// Starts the abort of the communicator and its kernels on the GPU, and returns. Any thread; repeated calls are
  /// allowed.
  void abort() noexcept;

  const std::string& name() const noexcept { return name_; }

 private:
  enum class CallState { in_progress, complete, aborted };
  CallState poll_state(const char* call);
  /// False if the communicator was aborted.
  template <class Turn>
  bool run_to_completion(const char* call, Turn&& turn) {
    CallState state = poll_state(call);
    for (; state == CallState::in_progress; state = poll_state(call)) turn();
    return state == CallState::complete;
  }
  void deregister() noexcept;
  /// Takes comm_ out of this object, so that no other call uses it.
  ncclComm_t release_comm() noexcept;

  const NcclApi& api_;
  const std::string name_;
  const int gpu_;    // of the thread that created this object
  std::mutex mutex_; // guards comm_ and all calls with it
  ncclComm_t comm_ = nullptr;
  void* event_ = nullptr;     // recorded after each launch
  std::vector<void*> blocks_; // registration handles
  std::mutex abort_mutex_;    // guards abort_thread_ and aborting_
  std::thread abort_thread_;  // runs ncclCommAbort
  bool aborting_ = false;
};

} // namespace triax::comm_nccl
