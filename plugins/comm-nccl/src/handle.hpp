// One NCCL communicator of this rank, from its making to its end.
//
// Threads: the rank's main thread, but for abort(), which any thread may call: a lock keeps the two from being inside
// NCCL with the same communicator at a time. Ownership: owns the communicator and its mark. Blocking: settle() and
// finish(), in turns of their caller's; abort() waits for a call of the main thread, a moment at most. Errors: Error
// with NCCL's words.
//
// Communicators are nonblocking: a call that cannot be through at once answers ncclInProgress, and nothing else may be
// asked of the communicator until ncclCommGetAsyncError says otherwise. That is so while it is being made or split, and
// when peers meet for the first time; joining has them meet.
#pragma once

#include <memory>
#include <mutex>
#include <string>
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
  /// Aborts what has not been finished.
  ~Handle();

  /// Begins to make the communicator; settle() sees it made.
  void begin(const ncclUniqueId& id, int size, int index, ncclConfig_t config);
  /// Begins to make `part` of those members that give the same color; all members of this one call it. settle() of this
  /// one, then of the part, sees it made. A negative color: not of any part.
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
  /// Something launched has not come to its end.
  bool busy();
  void register_block(void* data, std::size_t bytes);

  /// Ends it in order, with the other members, until the deadline; after that, alone.
  void finish(Deadline deadline) noexcept;
  /// Ends it alone, and what of it runs on the GPU. Any thread.
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

  const NcclApi& api_;
  const std::string name_;
  std::timed_mutex mutex_; // of comm_ and all calls with it
  ncclComm_t comm_ = nullptr;
  void* mark_ = nullptr;
  std::vector<void*> blocks_; // registered
};

} // namespace comm_nccl
