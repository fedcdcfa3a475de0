// SPDX-License-Identifier: Apache-2.0
// Host-side queue of a stream: waits for events, host tasks and marks, in order, advanced by the progress loop.
//
// Threads: the rank's main thread; any thread may query the events of marks. Blocking: progress_until() and
// finish_all(). Errors: Error when the device's default timeout expires, or when the rank is aborted.
//
// An item is done when its event has fired and, if it is a task, the task has finished; then the next item starts. If
// the event of an item failed, the queue sets the rank's abort flag and stops, because later items would use data that
// never arrived. The source is compiled into each library that has streams, because libtriax_core does not export it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "triax/device.hpp"

namespace triax::device {

class HostQueue {
 public:
  HostQueue(std::string_view stream, Device& device);
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  ~HostQueue() { drop(); }

  void wait(const Event& event) { push({Item::Kind::wait, event}); }
  /// The task starts after `before` has fired.
  void post(HostTask& task, const Event& before = {}) { push({Item::Kind::task, before, &task}); }
  /// Returns an event that fires when all earlier items are done.
  Event mark(const Event& before = {});

  bool empty() const noexcept { return count_ == 0; }
  /// Number of the item that was added last; numbers increase by one.
  std::uint32_t last() const noexcept { return last_; }

  /// Removes finished items and calls over(number) for each. Returns true if there were any.
  template <class Over>
  bool advance(Over over) noexcept {
    if (advancing_ || failed_) return false; // a task may run the progress loop: no recursion
    advancing_ = true;
    bool moved = false;
    while (count_ > 0) {
      const Item item = ring_[head_]; // a copy: a task may post, and the ring may grow
      if (!finished(item)) break;
      over(item.number);
      head_ = (head_ + 1) % ring_.size();
      --count_;
      moved = true;
    }
    advancing_ = false;
    return moved;
  }
  /// Calls dropped() of the tasks that have not finished, and empties the queue.
  void drop() noexcept;

  // These run the progress loop.
  void progress_until(const Event& event); // also throws Error if the event failed
  void finish_all();

 private:
  /// Marks fire in queue order, so one counter is enough for all of them.
  class Marks final : public EventState {
   public:
    Event next() { return {this, ++given_}; }
    void fire() noexcept { fired_.fetch_add(1, std::memory_order_release); }
    bool fired(std::uint64_t generation) noexcept override {
      return fired_.load(std::memory_order_acquire) >= generation;
    }
    const char* failure(std::uint64_t) const noexcept override { return nullptr; }

   private:
    std::uint64_t given_ = 0;
    std::atomic<std::uint64_t> fired_{0};
  };

  struct Item {
    enum class Kind { wait, task, mark } kind = Kind::mark;
    Event event; // must fire first
    HostTask* task = nullptr;
    std::uint32_t number = 0;
  };

  void push(Item item);
  bool finished(const Item& item) noexcept;
  template <class Done>
  void progress_while(Done done);

  const std::string location_;
  Device& device_;
  Marks marks_;
  std::vector<Item> ring_; // grows when full; its size after the first item is more than a step adds
  std::size_t head_ = 0, count_ = 0;
  std::uint32_t last_ = 0;
  bool advancing_ = false, failed_ = false;
};

} // namespace triax::device
