// A stream of the host device: a queue of waits, host tasks and marks that the pump moves on.
//
// Threads: the rank's main thread, but for current(). Ownership: the queue refers to tasks and events of others.
// Blocking: ready() only. A wait whose event failed raises the rank's interrupt and stops the queue: what follows would
// work on data that never came.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "triax/device.hpp"

namespace triax::device {

class HostStream final : public Stream {
 public:
  /// Enters itself into the device's list of streams, and leaves it when it goes.
  HostStream(std::string name, Device& device, std::vector<HostStream*>& streams);
  ~HostStream() override;

  std::string_view name() const noexcept override { return name_; }
  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void begin(ActionId action, const char* label) noexcept override;
  void end(ActionId action) noexcept override;
  ActionId current() const noexcept override { return current_.load(std::memory_order_relaxed); }
  void* native() noexcept override { return nullptr; }

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
    Event event;
    HostTask* task = nullptr;
  };

  void push(const Item& item);
  bool finished(const Item& item) noexcept;

  std::string name_;
  Device& device_;
  std::vector<HostStream*>& streams_;
  Marks marks_;
  std::vector<Item> ring_; // grows when full; begins larger than what a step leaves waiting
  std::size_t head_ = 0, count_ = 0;
  bool advancing_ = false, failed_ = false;
  std::atomic<ActionId> current_{kNoAction};
};

} // namespace triax::device
