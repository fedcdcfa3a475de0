// SPDX-License-Identifier: Apache-2.0
// Tables of handles (streams, events, graphs). A handle is a number that is never used again, so that each use after
// the destruction is found.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "errors.hpp"

namespace triax::gpu_stand_in {

template <class Handle, class T>
class HandleTable {
 public:
  explicit HandleTable(std::string kind) : kind_(std::move(kind)) {}

  Handle add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    next_ += kStep;
    live_[next_] = std::move(object);
    return std::bit_cast<Handle>(next_);
  }
  // Throws CallError if the handle is not one of this table.
  std::shared_ptr<T> get(Handle handle) const {
    if (auto found = find(handle)) return found;
    throw CallError(cudaErrorInvalidResourceHandle, explain(handle));
  }
  std::shared_ptr<T> find(Handle handle) const {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == live_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(Handle handle) {
    std::shared_ptr<T> object = get(handle);
    std::lock_guard lock(mutex_);
    live_.erase(reinterpret_cast<std::uintptr_t>(handle));
    return object;
  }
  std::vector<std::shared_ptr<T>> all() const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> objects;
    for (const auto& [handle, object] : live_) objects.push_back(object);
    return objects;
  }

 private:
  static constexpr std::uintptr_t kFirst = 0x10000, kStep = 16;

  std::string explain(Handle handle) const {
    std::lock_guard lock(mutex_);
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    const bool was_one = number > kFirst && number <= next_ && number % kStep == 0;
    return was_one ? "the " + kind_ + " was destroyed" : "the handle is not a " + kind_ + "'s";
  }

  const std::string kind_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<T>> live_;
  std::uintptr_t next_ = kFirst;
};

} // namespace triax::gpu_stand_in
