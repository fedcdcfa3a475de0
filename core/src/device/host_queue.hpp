// What on a stream is the host's business: waits for events, host tasks and marks, in their order, moved on by the
// pump.
//
// Threads: the rank's main thread; marks fire for any. Ownership: refers to tasks and events of others. Blocking:
// pump_until() and run_dry(). Errors: Error at the device's patience, and where the rank's interrupt is raised.
//
// An item is over when the event it waits for has fired and, if it is a task, the task says so; the next one starts
// then. A wait whose event failed raises the rank's interrupt and stops the queue: what follows would work on data that
// never came. Compiled into each library that has streams (libtriax_core keeps its symbols hidden).
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
  /// `before`: the task starts no earlier than it fires.
  void post(HostTask& task, const Event& before = {}) { push({Item::Kind::task, before, &task}); }
  /// Fires when all before it is over.
  Event mark(const Event& before = {});

  bool empty() const noexcept { return count_ == 0; }
  /// Of the item put last; numbers rise by one.
  std::uint32_t last() const noexcept { return last_; }

  /// Takes items that are over; over(number) for each. Whether there were any.
  template <class Over>
  bool advance(Over over) noexcept {
    if (advancing_ || failed_) return false; // a task that pumps must not meet itself
    advancing_ = true;
    bool moved = false;
    while (count_ > 0) {
      const Item item = ring_[head_]; // by value: a task may post, and the ring may grow
      if (!finished(item)) break;
      over(item.number);
      head_ = (head_ + 1) % ring_.size();
      --count_;
      moved = true;
    }
    advancing_ = false;
    return moved;
  }
  /// Tells the tasks that have not run that they never will.
  void drop() noexcept;

  // These pump the device.
  void pump_until(const Event& event); // a failed one is an Error as well
  void run_dry();

 private:
  /// Marks fire in the order of the queue, so one counter serves them all.
  class Marks final : public EventState {
   public:
    Marks() : EventState(Class::host) {}
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
    Event event; // that has to fire first
    HostTask* task = nullptr;
    std::uint32_t number = 0;
  };

  void push(Item item);
  bool finished(const Item& item) noexcept;
  template <class Done>
  void pump(Done done);

  const std::string place_;
  Device& device_;
  Marks marks_;
  std::vector<Item> ring_; // grows when full; begins larger than what a step leaves waiting
  std::size_t head_ = 0, count_ = 0;
  std::uint32_t last_ = 0;
  bool advancing_ = false, failed_ = false;
};

} // namespace triax::device
