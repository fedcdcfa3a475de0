// SPDX-License-Identifier: Apache-2.0
#include "triax/local_store.hpp"

#include "triax/error.hpp"
#include "triax/wait_deadline.hpp"

namespace triax {

LocalStore::LocalStore() = default;
LocalStore::~LocalStore() = default;

void LocalStore::set(std::string_view key, std::string_view value) {
  {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(std::string(key), std::string(value));
  }
  changed_.notify_all();
}

std::string LocalStore::get(std::string_view key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto there = [&] { return values_.find(key) != values_.end(); };
  // Not wait_until(Deadline::max()): its conversion to the system clock overflows in some libraries.
  for (WaitDeadline until(deadline); !there();) {
    if (aborted_) throw Error(why_, text("store, waiting for the key \"{}\"", key));
    if (until.passed()) {
      throw Error(text("timed out waiting for key \"{}\"", key), "store", "the rank that sets it may be slow or lost");
    }
    ++waiting_;
    changed_.wait_for(lock, until.slice());
    --waiting_;
  }
  return values_.find(key)->second;
}

std::int64_t LocalStore::add(std::string_view key, std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  auto counter = counters_.find(key);
  if (counter == counters_.end()) counter = counters_.emplace(std::string(key), 0).first;
  return counter->second += amount;
}

int LocalStore::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void LocalStore::end_waits(std::string_view why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    aborted_ = true;
    try {
      why_ = why;
    } catch (...) { // out of memory: abort without the reason
      why_.clear();
    }
  }
  changed_.notify_all();
}

} // namespace triax
