// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.hpp"

#include <utility>

namespace triax::device {

HostStream::HostStream(std::string name, Device& device)
    : Stream(std::move(name), device), queue_(this->name(), device) {}

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

} // namespace triax::device
