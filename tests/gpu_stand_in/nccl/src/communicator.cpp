// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <thread>

namespace triax::gpu_stand_in {

namespace {

struct Table {
  std::mutex mutex;
  std::map<ncclComm_t, CommunicatorPtr> live;
};
Table& table() {
  static Table& all = *new Table;
  return all;
}

thread_local std::string last_message;

double report_after_s() {
  const char* text = std::getenv("TRIAX_GPU_NCCL_REPORT_S");
  return text ? std::atof(text) : 60.0;
}

} // namespace

void WaitReport::check(const std::string& what, const std::function<std::string()>& missing) {
  const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (is_reported_ || waited < report_after_s()) return;
  is_reported_ = true;
  report("NCCL: " + what + " waits for " + std::to_string(waited) + " s" + missing());
}

std::string Communicator::text() const {
  return "communicator " + name + ", rank " + std::to_string(rank) + " of " + std::to_string(size) + " on GPU " +
         std::to_string(device);
}

bool Communicator::is_passed() const {
  for (int n = 0; n < size; ++n) {
    if (segment.load()->members[n].arrived.load(std::memory_order_acquire) < barriers) return false;
  }
  return true;
}

void Communicator::fail(const std::string& why) {
  if (is_over()) return;
  report("NCCL: " + text() + ": " + why);
  state = ncclRemoteError;
  if (Segment* shared = segment) shared->failed = 1;
}

void Communicator::leave() {
  if (segment) own().process = 0;
}

void Communicator::check_members() {
  for (int n = 0; n < size; ++n) {
    const pid_t process = segment.load()->members[n].process;
    if (process != 0 && !is_process_alive(process)) {
      fail("the process of rank " + std::to_string(n) + " (pid " + std::to_string(process) + ") has ended");
    }
  }
}

void Communicator::wait_for_graphs(const std::string& call) const {
  WaitReport late;
  while (!may_end()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    late.check(call + " of " + text(), [this] {
      return "; a CUDA graph exists that contains " + std::to_string(captured) +
             " of its groups of calls: destroy it first";
    });
  }
}

void Communicator::join() {
  Segment* shared = open_segment(name);
  if (!shared) {
    state = ncclSystemError;
    return;
  }
  segment = shared;
  if (aborted) {
    shared->left = 1; // and its process may end
  } else {
    own().process = getpid();
  }
  ++shared->joined;
  WaitReport late;
  const auto is_complete = [&] { return static_cast<int>(shared->joined) == size; };
  while (!is_complete() && !is_broken()) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    check_members();
    late.check(text(), [&] {
      std::string missing;
      for (int n = 0; n < size; ++n)
        if (shared->members[n].process == 0) missing += "; rank " + std::to_string(n) + " has not joined";
      return missing;
    });
  }
  unlink_segment(name);
  state = is_complete() ? ncclSuccess : ncclRemoteError;
}

CommunicatorPtr find_communicator(ncclComm_t handle) {
  std::lock_guard lock(table().mutex);
  const auto found = table().live.find(handle);
  if (found != table().live.end()) return found->second;
  throw NcclError(ncclInvalidArgument, "the handle is not a communicator's, or that was destroyed");
}

ncclComm_t add_communicator(CommunicatorPtr communicator) {
  // Never used again, so that each use after the destruction is found.
  static std::atomic<std::uintptr_t> next = 0x20000;
  const auto handle = std::bit_cast<ncclComm_t>(next += 16);
  std::lock_guard lock(table().mutex);
  table().live[handle] = std::move(communicator);
  return handle;
}

void remove_communicator(ncclComm_t handle) {
  std::lock_guard lock(table().mutex);
  table().live.erase(handle);
}

CommunicatorPtr find_communicator_of(int device, std::uint64_t identity) {
  std::lock_guard lock(table().mutex);
  for (const auto& [handle, each] : table().live) {
    if (each->device == device && each->identity() == identity) return each;
  }
  return nullptr;
}

ncclResult_t nccl_call(const char* name, const std::function<void()>& body) {
  try {
    if (is_failure_planned(name, current_device())) {
      throw NcclError(ncclUnhandledCudaError, "this call fails, because TRIAX_GPU_FAIL says so");
    }
    body();
    return ncclSuccess;
  } catch (const NcclError& e) {
    if (e.result == ncclInProgress) return e.result;
    last_message = std::string(name) + ": " + e.what();
    report(last_message);
    return e.result;
  } catch (const std::exception& e) {
    last_message = std::string(name) + ": " + e.what();
    report(last_message);
    return ncclInternalError;
  }
}

} // namespace triax::gpu_stand_in

extern "C" const char* ncclGetLastError(ncclComm_t) {
  return triax::gpu_stand_in::last_message.c_str();
}
