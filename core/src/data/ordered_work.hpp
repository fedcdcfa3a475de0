// Work on many threads whose results are taken in order: the results do not depend on how many threads there are.
//
// Threads: one fills and takes, `threads` others work. Ownership: owns its threads, which end with it. Blocking: next()
// and finish() wait for the oldest job. Memory: a fixed number of jobs, used again and again. Errors: what a worker
// throws is thrown when its job's turn has come.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace triax::data {

template <class Job>
class OrderedWork {
 public:
  /// `work(job, thread)` is called by one of the threads, 0 to threads-1; then `take(job)` by the caller's.
  OrderedWork(int threads, std::function<void(Job&, int)> work, std::function<void(Job&)> take)
      : work_(std::move(work)), take_(std::move(take)), places_(2 * static_cast<std::size_t>(threads) + 1) {
    threads_.reserve(static_cast<std::size_t>(threads));
    try {
      for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this, thread] { run(thread); });
    } catch (...) {
      end();
      throw;
    }
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;
  ~OrderedWork() { end(); }

  /// A job to be filled, as it was left after it was last taken.
  Job& next() {
    if (filled_ - taken_ == places_.size()) take_oldest();
    return place(filled_).job;
  }

  /// Hands over what next() gave.
  void hand_over() {
    {
      const std::lock_guard lock(mutex_);
      place(filled_).done = false;
      ++filled_;
    }
    work_there_.notify_one();
  }

  /// Takes everything that was handed over.
  void finish() {
    while (taken_ < filled_) take_oldest();
  }

 private:
  struct Place {
    Job job;
    bool done = false;
    std::exception_ptr failure = nullptr;
  };

  Place& place(std::size_t number) { return places_[number % places_.size()]; }

  void take_oldest() {
    Place& oldest = place(taken_);
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
      Place& mine = place(started_++);
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
  std::vector<Place> places_;
  std::size_t filled_ = 0, started_ = 0, taken_ = 0; // numbers of jobs since the beginning; taken_ is the caller's own
  bool ended_ = false;
  std::mutex mutex_; // of filled_, started_, ended_ and Place::done
  std::condition_variable work_there_, result_there_;
  std::vector<std::thread> threads_;
};

} // namespace triax::data
