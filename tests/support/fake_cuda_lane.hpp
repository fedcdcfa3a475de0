// SPDX-License-Identifier: Apache-2.0
// The fake's native CUDA stream: a queue of items and the thread that runs them, each after its own delay.
//
// Threads: put() and record() by the rank's main thread; fired() and failure() by any. Ownership: the device, which
// keeps it longer than the stream and the waits for its events. Blocking: finish(), until all items have run. Errors:
// an item that throws fails the events after it.
//
// A lane is the state of all events recorded on it: an event's generation is the number of items enqueued before it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "triax/device.hpp"

namespace triax::test::fake_cuda {

class Lane;

/// Only a `call` allocates.
struct Item {
  enum class Kind { copy, fill, convert, add, call, event, flag };
  Kind kind = Kind::call;
  TensorView to, from; // as items access them
  double value = 0;
  Lane* of = nullptr;       // lane of the awaited event
  std::uint64_t number = 0; // generation of the event, or number that the flag must reach
  std::function<void()> call;
};

class Lane final : public EventState {
 public:
  Lane(std::string_view name, std::uint64_t seed, std::uint32_t number);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() override { finish(); }

  void put(Item item);
  Event record() noexcept { return {this, put_.load(std::memory_order_relaxed)}; }
  /// Lets items pass that wait for the flag to reach this number or a lower one.
  void set_flag(std::uint64_t number) noexcept;
  /// The stream is destroyed: no item waits for the flag, and the thread ends after the last item.
  void close() noexcept;
  /// Returns when all items have run. After that, no wait depends on an event of this lane that has not fired.
  void finish() noexcept;

  bool fired(std::uint64_t generation) noexcept override { return done_.load(std::memory_order_acquire) >= generation; }
  const char* failure(std::uint64_t generation) const noexcept override;

 private:
  void run();
  void do_item(const Item& item);
  void wait_until_done(std::uint64_t number);
  void delay(std::uint64_t number) const;

  const std::string name_;
  const std::uint64_t seed_;
  const std::uint32_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> ring_; // [done, put); grows when full
  std::atomic<std::uint64_t> put_{0}, done_{0}, failed_{0};
  std::uint64_t flag_ = 0;
  bool closed_ = false;
  std::string why_; // reason of failed_
  std::thread thread_;
};

} // namespace triax::test::fake_cuda
