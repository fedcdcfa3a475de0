// SPDX-License-Identifier: Apache-2.0
// Runs jobs on several threads and delivers their results in order, so that results do not depend on the number of
// threads.
//
// Threads: one thread fills and takes jobs, `threads` others work. Ownership: owns its threads; the destructor joins
// them. Blocking: next() and finish() wait for the oldest job. Memory: a fixed number of jobs, which are reused.
// Errors: an exception of a worker is rethrown when its job is taken.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.hpp"

namespace triax::data {

template <class Job>
class OrderedWork {
 public:
  /// A worker thread calls `work(job, thread)`, with thread in [0, threads); the caller's thread then calls
  /// `take(job)`.
  OrderedWork(int threads, std::function<void(Job&, int)> work, std::function<void(Job&)> take)
      : work_(std::move(work)), take_(std::move(take)), slots_(2 * static_cast<std::size_t>(threads) + 1) {
    threads_.reserve(static_cast<std::size_t>(threads));
    try {
      for (int thread = 0; thread < threads; ++thread)
        threads_.push_back(start_thread(text("thread {} of {}", thread + 1, threads),
                                        [&] { return std::thread([this, thread] { run(thread); }); }));
    } catch (...) {
      end();
      throw;
    }
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;
  ~OrderedWork() { end(); }

  /// A job to fill. It has the contents that it had when it was last taken.
  Job& next() {
    if (filled_ - taken_ == slots_.size()) take_oldest();
    return slot(filled_).job;
  }

  /// Submits the job that next() returned.
  void hand_over() {
    {
      const std::lock_guard lock(mutex_);
      slot(filled_).done = false;
      ++filled_;
    }
    work_there_.notify_one();
  }

  /// Takes all submitted jobs.
  void finish() {
    while (taken_ < filled_) take_oldest();
  }

 private:
  struct Slot {
    Job job;
    bool done = false;
    std::exception_ptr failure = nullptr;
  };

  Slot& slot(std::size_t number) { return slots_[number % slots_.size()]; }

  void take_oldest() {
    Slot& oldest = slot(taken_);
    {
      std::unique_lock lock(mutex_);
      result_there_.wait(lock, [&] { return oldest.done; });
    }
    ++taken_;
    if (oldest.failure) std::rethrow_exception(std::exchange(oldest.failure, nullptr));
    take_(oldest.job);
  }

  void run(int thread) {
    for (;;) {
      std::unique_lock lock(mutex_);
      work_there_.wait(lock, [this] { return ended_ || started_ < filled_; });
      if (ended_) return;
      Slot& mine = slot(started_++);
      lock.unlock();
      try {
        work_(mine.job, thread);
      } catch (...) {
        mine.failure = std::current_exception();
      }
      lock.lock();
      mine.done = true;
      lock.unlock();
      result_there_.notify_one();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    work_there_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::function<void(Job&, int)> work_;
  std::function<void(Job&)> take_;
  std::vector<Slot> slots_;
  std::size_t filled_ = 0, started_ = 0, taken_ = 0; // job counts; only the caller's thread uses taken_
  bool ended_ = false;
  std::mutex mutex_; // protects filled_, started_, ended_ and Slot::done
  std::condition_variable work_there_, result_there_;
  std::vector<std::thread> threads_;
};

} // namespace triax::data
