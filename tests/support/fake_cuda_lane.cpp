// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda_lane.hpp"

#include <chrono>
#include <utility>

#include "device/movement.hpp"
#include "triax/error.hpp"
#include "triax/random.hpp"

namespace triax::test::fake_cuda {

namespace {

constexpr std::size_t kInitialCapacity = 1024; // initial capacity in items

} // namespace

Lane::Lane(std::string_view name, std::uint64_t seed, std::uint32_t number)
    : name_(name), seed_(seed), number_(number), ring_(kInitialCapacity), thread_([this] { run(); }) {}

void Lane::finish() noexcept {
  close();
  if (thread_.joinable()) thread_.join();
}

void Lane::put(Item item) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t put = put_, done = done_;
    if (put - done == ring_.size()) {
      std::vector<Item> larger(2 * ring_.size());
      for (std::uint64_t i = done; i < put; ++i) larger[i % larger.size()] = std::move(ring_[i % ring_.size()]);
      ring_ = std::move(larger);
    }
    ring_[put % ring_.size()] = std::move(item);
    put_ = put + 1;
  }
  changed_.notify_all();
}

void Lane::set_flag(std::uint64_t number) noexcept {
  {
    const std::lock_guard lock(mutex_);
    flag_ = number;
  }
  changed_.notify_all();
}

void Lane::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

const char* Lane::failure(std::uint64_t generation) const noexcept {
  const std::uint64_t failed = failed_.load(std::memory_order_acquire);
  return failed != 0 && generation >= failed ? why_.c_str() : nullptr;
}

void Lane::run() {
  for (std::uint64_t next = 0;; ++next) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return put_ > next || closed_; });
      if (put_ == next) return;
      item = std::move(ring_[next % ring_.size()]);
    }
    delay(next);
    if (failed_ == 0) {
      try {
        do_item(item);
      } catch (const std::exception& error) {
        why_ = text("the fake GPU failed at item {} of stream \"{}\": {}", next, name_, error.what());
        failed_.store(next + 1, std::memory_order_release);
      }
    }
    item = {}; // release what it holds before its event fires
    {
      const std::lock_guard lock(mutex_);
      done_.store(next + 1, std::memory_order_release);
    }
    changed_.notify_all();
  }
}

void Lane::do_item(const Item& item) {
  switch (item.kind) {
    case Item::Kind::copy:
      return device::copy_elements(item.to, item.from);
    case Item::Kind::fill:
      return device::fill_elements(item.to, item.value);
    case Item::Kind::convert:
      return device::convert_elements(item.to, item.from);
    case Item::Kind::add:
      return device::add_elements(item.to, item.from);
    case Item::Kind::call:
      return item.call();
    case Item::Kind::event:
      return item.of->wait_until_done(item.number);
    case Item::Kind::flag: {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return flag_ >= item.number || closed_; });
      return;
    }
  }
}

void Lane::wait_until_done(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

/// Half of the items start at once, the others 1 to 1024 us late, by a power of two.
void Lane::delay(std::uint64_t number) const {
  const PhiloxBlock drawn = philox_at(philox_key(seed_, RandomPurpose::test), number, number_, 0);
  if (drawn[0] % 2 == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(1u << drawn[1] % 11));
}

} // namespace triax::test::fake_cuda
