// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.hpp"

namespace triax::device {

HostStream::HostStream(std::string name, Device& device, std::vector<HostStream*>& streams)
    : name_(std::move(name)), streams_(streams), queue_(name_, device) {
  streams_.push_back(this);
}

HostStream::~HostStream() {
  std::erase(streams_, this);
}

void HostStream::wait(const Event& event) {
  if (event.fired() && !event.failure()) return;
  queue_.wait(event);
}

Event HostStream::record() {
  return queue_.empty() ? Event() : queue_.mark();
}

void HostStream::post(HostTask& task) {
  queue_.post(task);
}

bool HostStream::advance() noexcept {
  return queue_.advance([](std::uint32_t) {});
}

void HostStream::ready() {
  queue_.finish_all();
}

void HostStream::begin(ActionId action, const char*) noexcept {
  current_.store(action, std::memory_order_relaxed);
}

void HostStream::end(ActionId) noexcept {
  current_.store(kNoAction, std::memory_order_relaxed);
}

} // namespace triax::device
