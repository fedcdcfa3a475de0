// SPDX-License-Identifier: Apache-2.0
// State of the fake: one world for all ranks of the process, under one lock.
//
// Threads: any, with the lock held; `here` is thread-local. Ownership: owns all communicators until reset().
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_kernels.hpp"

namespace triax::test::fake {

inline constexpr std::pair<int, int> kNotYet{-2, 0}; // member of a split that has not called yet

struct Injection {
  ncclResult_t result = ncclSuccess;
  std::string why;
};

class FakeWorld {
 public:
  std::mutex mutex; // guards everything
  std::condition_variable changed;
  FakeRules rules;
  std::vector<std::string> wrong;
  FakeCounts count;
  std::vector<std::unique_ptr<Comm>> comms;               // also ended ones, to detect their use
  std::map<std::string, std::shared_ptr<Clique>> cliques; // by unique id
  std::map<int, std::weak_ptr<Kernel>> on_gpu;            // last kernel of each process
  std::map<void*, std::weak_ptr<Kernel>> on_stream;
  std::map<std::pair<int, std::string>, Injection> next;
  std::map<int, std::string> gpus;
  std::set<int> have_host_id;
  std::string last_error;
  int ids = 0;

  static FakeWorld& get();

  void violated(std::string what) { wrong.push_back(std::move(what)); }
  /// Sets an asynchronous error on all members: their kernels hang until they are aborted.
  void violated(Clique& clique, const std::string& what);
  static void fail(Comm* comm, ncclResult_t result, const std::string& why);
};

struct Waiting { // a call in an open NCCL group
  Comm* comm;
  std::shared_ptr<Call> call;
  cudaStream_t stream;
};
struct ThisThread {
  FakeProcess process;
  int gpu = 0; // that of a rank has its number
  int depth = 0;
  std::vector<Waiting> group;
  ncclResult_t result = ncclSuccess;
};
extern thread_local ThisThread here;

inline Comm* of(ncclComm_t comm) {
  return static_cast<Comm*>(comm);
}

inline bool stopped(const Comm& comm) {
  return comm.aborted || comm.dead || comm.ended;
}

/// Enqueues the kernel on its stream. Its peers must be connected.
void launch(const std::shared_ptr<Kernel>& kernel);
bool connected(const Kernel& kernel);
/// Submits the calls of one group, or one single call: one kernel per communicator.
ncclResult_t submit(const std::vector<Waiting>& group);

} // namespace triax::test::fake
