// Threads that share out the items of one call, and sleep between calls.
//
// Threads: one pool per kernel set, used by the rank's main thread, which works along; run() is not to be nested.
// Ownership: owns its threads; they end with it. Blocking: run() returns when every item is done; a worker that has not
// woken up by then is not waited for, so that a busy machine costs no more than the lost help. Errors: the first
// exception of an item is thrown by run(), the other items may be left out. No call allocates.
// Which thread gets which item is left to chance: items must not depend on each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "pump.hpp"

namespace triax::cpu {

class Pool {
 public:
  /// `threads` counts the caller. `pump` is called by run() after each item of the calling thread.
  Pool(int threads, Pump pump);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// body(item, thread) for each item in [0, items), with thread in [0, threads()).
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

  Pump pump_;
  Job job_;
  std::atomic<bool> failed_{false}, stopping_{false};
  std::exception_ptr failure_;
  // Generation (upper half), whether the job is open to workers (bit 15), how many workers are in it.
  alignas(64) std::atomic<std::uint32_t> state_{0};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  std::vector<std::thread> workers_;
};

} // namespace triax::cpu
