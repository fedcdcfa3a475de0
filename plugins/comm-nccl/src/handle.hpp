// One NCCL communicator of this rank, from its making to its end.
//
// Threads: the rank's main thread, but for abort(), which any thread may call: a lock keeps the two from being inside
// NCCL with the same communicator at a time. An abort has a thread of its own. Ownership: owns the communicator, its
// mark and that thread. Blocking: settle(), in turns of its caller's; finish(), until its deadline, and as long as
// ncclCommDestroy takes; the destructor, until an abort is through. abort() does not block. Errors: Error with NCCL's
// words.
//
// ncclCommAbort waits until the communicator's kernels have left their streams: behind a kernel of another communicator
// that hangs, until that one is aborted too; of a recorded CUDA graph, until the graph goes. So whoever aborts several
// begins all before it waits for one, and graphs go before the communicators that they refer to.
//
// Communicators are nonblocking: a call that cannot be through at once answers ncclInProgress, and nothing else may be
// asked of the communicator until ncclCommGetAsyncError says otherwise. That is so while it is being made or split, and
// when peers meet for the first time; joining has them meet.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api.hpp"
#include "results.hpp"

namespace comm_nccl {

class Handle {
 public:
  /// `name`: "group tensor.0", for errors.
  Handle(const NcclApi& api, std::string name);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  /// Aborts what has not been finished, and waits for that.
  ~Handle();

  /// Begins to make the communicator; settle() sees it made.
  void begin(const ncclUniqueId& id, int size, int index, ncclConfig_t config);
  /// Begins to make `part` of those members that give the same color; all members of this one call it. settle() of this
  /// one, then of the part, sees it made. A negative color: not of any part. NCCL writes to the part from a thread of
  /// its own until this one is settled, or gone: the part outlives that.
  void begin_split(Handle& part, int color, int key, ncclConfig_t config);
  /// Calls turn() until NCCL is through with the call before; turn() throws to give up.
  template <class Turn>
  void settle(const char* call, Turn turn) {
    if (!see_through(call, turn)) throw Error("it was aborted while a call was under way", text("{}, {}", name_, call));
  }

  /// call(comm) puts work on a native stream, which the mark then follows; false: it was aborted. A call that NCCL is
  /// not through with is seen to its end in turns.
  template <class Launch, class Turn>
  bool launch(const char* name, cudaStream_t stream, Launch call, Turn turn) {
    {
      const std::lock_guard lock(mutex_);
      if (!comm_) return false;
      const ncclResult_t result = call(comm_);
      if (result == ncclSuccess) {
        api_.put_mark(mark_, stream);
        return true;
      }
      if (result != ncclInProgress) fail(api_, result, name, name_, comm_);
    }
    if (!see_through(name, turn)) return false;
    const std::lock_guard lock(mutex_);
    if (!comm_) return false;
    api_.put_mark(mark_, stream);
    return true;
  }

  /// The same with what calls(comm) begins as one NCCL group: its transfers go side by side.
  template <class Calls, class Turn>
  bool launch_set(cudaStream_t stream, Calls calls, Turn turn) {
    const auto set = [&](ncclComm_t comm) {
      ncclResult_t result = api_.group_start();
      if (result != ncclSuccess) return result;
      result = calls(comm);
      const ncclResult_t ended = api_.group_end();
      return goes_on(result) ? ended : result;
    };
    return launch("ncclGroupEnd", stream, set, turn);
  }

  /// What NCCL says of it: ncclSuccess, ncclInProgress, or what went wrong, which `why` then tells.
  ncclResult_t state(std::string& why);
  /// Something launched has not come to its end. What a recorded step launches again is not seen: the mark was put in
  /// its recording, which reads as passed; whoever launches it knows when it is through.
  bool busy();
  void register_block(void* data, std::size_t bytes);

  /// Ends it in order, with the other members, until the deadline; after that, alone.
  void finish(Deadline deadline) noexcept;
  /// Begins to end it alone, and what of it runs on the GPU, and comes back. Any thread; again and again.
  void abort() noexcept;

  const std::string& name() const noexcept { return name_; }

 private:
  enum class Call { under_way, through, aborted };
  Call look_at(const char* call);
  /// False: it was aborted.
  template <class Turn>
  bool see_through(const char* call, Turn turn) {
    Call state = look_at(call);
    for (; state == Call::under_way; state = look_at(call)) turn();
    return state == Call::through;
  }
  void deregister() noexcept;
  /// The communicator, which nobody else finds here any more.
  ncclComm_t taken() noexcept;

  const NcclApi& api_;
  const std::string name_;
  std::mutex mutex_; // of comm_ and all calls with it
  ncclComm_t comm_ = nullptr;
  void* mark_ = nullptr;
  std::vector<void*> blocks_; // registered
  std::mutex ending_;         // of ender_ and aborting_
  std::thread ender_;         // inside ncclCommAbort, or on its way there
  bool aborting_ = false;
};

} // namespace comm_nccl
