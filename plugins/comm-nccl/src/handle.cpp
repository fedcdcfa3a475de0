// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <chrono>
#include <system_error>
#include <utility>

namespace triax::comm_nccl {

using namespace std::chrono_literals;

Handle::Handle(const NcclApi& api, std::string name)
    : api_(api), name_(std::move(name)), gpu_(api.current_gpu()), event_(api.make_event()) {}

Handle::~Handle() {
  abort();
  if (abort_thread_.joinable()) abort_thread_.join();
  api_.free_event(event_);
}

void Handle::begin(const ncclUniqueId& id, int size, int index, ncclConfig_t config) {
  const std::lock_guard lock(mutex_);
  const ncclResult_t result = api_.comm_init_rank_config(&comm_, size, id, index, &config);
  if (result != ncclInProgress) check(api_, result, "ncclCommInitRankConfig", name_);
}

void Handle::begin_split(Handle& part, int color, int key, ncclConfig_t config) {
  const std::scoped_lock lock(mutex_, part.mutex_);
  if (!comm_) throw Error("the communicator was aborted while joining", name_);
  const ncclResult_t result = api_.comm_split(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part.comm_, &config);
  if (result != ncclInProgress) check(api_, result, "ncclCommSplit", name_, comm_);
}

Handle::CallState Handle::poll_state(const char* call) {
  const std::lock_guard lock(mutex_);
  if (!comm_) return CallState::aborted;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = api_.comm_get_async_error(comm_, &state);
  check(api_, asked == ncclInProgress ? ncclSuccess : asked, "ncclCommGetAsyncError", name_, comm_);
  if (state == ncclInProgress) return CallState::in_progress;
  check(api_, state, call, name_, comm_);
  return CallState::complete;
}

ncclResult_t Handle::state(std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!comm_) return ncclSuccess;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = api_.comm_get_async_error(comm_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state != ncclSuccess && state != ncclInProgress) why = text_of(api_, state, comm_);
  return state;
}

bool Handle::busy() {
  return !api_.event_done(event_);
}

void Handle::register_block(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!comm_) return;
  void* block = nullptr;
  check(api_, api_.comm_register(comm_, data, bytes, &block), "ncclCommRegister", name_, comm_);
  blocks_.push_back(block);
}

void Handle::deregister() noexcept {
  for (void* block : blocks_) api_.comm_deregister(comm_, block);
  blocks_.clear();
}

void Handle::finish(Deadline deadline) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) return;
    deregister();
    if (const ncclResult_t begun = api_.comm_finalize(comm_); begun != ncclSuccess && begun != ncclInProgress)
      deadline = Clock::now();
  }
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!comm_) return;
      ncclResult_t state = ncclInProgress;
      const ncclResult_t asked = api_.comm_get_async_error(comm_, &state);
      if (asked == ncclSuccess && state == ncclSuccess) {
        api_.comm_destroy(std::exchange(comm_, nullptr));
        return;
      }
      if (state != ncclInProgress || Clock::now() >= deadline) break;
    }
    std::this_thread::sleep_for(100us);
  }
  abort();
}

ncclComm_t Handle::release_comm() noexcept {
  blocks_.clear();
  return std::exchange(comm_, nullptr);
}

/// The main thread may hold the lock inside an NCCL call. A post returns soon, unless CUDA's launch queue is full: then
/// it returns when the GPU advances. The abort thread waits for the lock. If the call never returns, the process must
/// be ended from outside.
void Handle::abort() noexcept {
  const std::lock_guard once(abort_mutex_);
  if (aborting_) return;
  ncclComm_t released = nullptr;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) {
    if (!comm_) return;
    released = release_comm();
    lock.unlock();
  }
  aborting_ = true;
  const auto run_abort = [this, released]() noexcept {
    ncclComm_t comm = released;
    if (!comm) {
      const std::lock_guard wait(mutex_);
      comm = release_comm();
    }
    if (!comm) return;
    api_.use_gpu(gpu_); // NCCL makes the thread's GPU current again: for GPU 0, CUDA would create a context on it
    api_.comm_abort(comm);
  };
  try {
    abort_thread_ = std::thread(run_abort);
  } catch (const std::system_error&) { // no thread could be started: abort in this thread
    run_abort();
  }
}

} // namespace triax::comm_nccl
