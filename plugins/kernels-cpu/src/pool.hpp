// SPDX-License-Identifier: Apache-2.0
// Threads that share the items of one call, and sleep between calls.
//
// Threads: one pool per kernel set, used by the rank's main thread, which works too. run() cannot be nested.
// Ownership: owns its threads and joins them at its end. Blocking: run() returns when every item is done. It does not
// wait for a worker that has not woken up, so a busy machine costs only that worker's help. Errors: run() rethrows the
// first exception of an item; other items may be skipped. Calls do not allocate.
// The assignment of items to threads is not deterministic: items must be independent.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "progress_poll.hpp"

namespace triax::kernels_cpu {

class Pool {
 public:
  /// `threads` includes the caller. run() calls `poll` after each item of the calling thread.
  Pool(int threads, ProgressPoll poll);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(item, thread) for each item in [0, items), with thread in [0, threads()).
  template <class Body>
  void run(std::int64_t items, const Body& body) {
    const auto call = [](const void* object, std::int64_t item, int thread) {
      (*static_cast<const Body*>(object))(item, thread);
    };
    run_job({items, call, &body});
  }

 private:
  struct Job {
    std::int64_t items = 0;
    void (*call)(const void* object, std::int64_t item, int thread) = nullptr;
    const void* object = nullptr;
  };

  void run_job(const Job& job);
  void run_alone(const Job& job);
  void open(const Job& job);
  void close();
  void drain(int thread) noexcept;
  void work(int thread) noexcept;
  void await_change(std::uint32_t state) noexcept;
  void wake() noexcept;
  void stop() noexcept;

  ProgressPoll poll_;
  Job job_;
  std::atomic<bool> failed_{false}, stopping_{false};
  std::exception_ptr failure_;
  // Generation (upper 16 bits), whether workers may join the job (bit 15), number of workers in it (lower bits).
  alignas(64) std::atomic<std::uint32_t> state_{0};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  std::vector<std::thread> workers_;
};

} // namespace triax::kernels_cpu
