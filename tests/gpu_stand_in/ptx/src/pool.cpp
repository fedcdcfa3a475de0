// SPDX-License-Identifier: Apache-2.0
// Threads of the host that run blocks.
#include "pool.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace triax::gpu_stand_in {

namespace {

struct Job {
  const std::function<void()>* work;
  unsigned running = 0, open = 0; // calls that run; calls that may still begin
};

class Pool {
 public:
  void run(unsigned helpers, const std::function<void()>& work) {
    Job job{&work, 0, helpers};
    {
      std::lock_guard lock(mutex_);
      while (threads_ < helpers) {
        std::thread([this] { serve(); }).detach();
        ++threads_;
      }
      jobs_.push_back(&job);
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job); // no call begins any more
    done_.wait(lock, [&] { return job.running == 0; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !jobs_.empty(); });
      Job* job = jobs_.front();
      if (--job->open == 0) jobs_.pop_front();
      ++job->running;
      lock.unlock();
      (*job->work)();
      lock.lock();
      if (--job->running == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job*> jobs_;
  unsigned threads_ = 0;
};

} // namespace

void parallel(unsigned threads, const std::function<void()>& work) {
  // Never destroyed: its threads wait for work until the process ends.
  static Pool& pool = *new Pool;
  if (threads <= 1) return work();
  pool.run(threads - 1, work);
}

} // namespace triax::gpu_stand_in
