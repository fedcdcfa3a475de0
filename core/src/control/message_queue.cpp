// SPDX-License-Identifier: Apache-2.0
#include "control/message_queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace triax::control {

namespace {

std::size_t size_of(const WorkerMessage& message) {
  return sizeof message + message.topic.size() + message.text.size();
}

} // namespace

bool MessageQueue::add(WorkerMessage message) {
  const auto like = [&message](const WorkerMessage& other) {
    return other.rank == message.rank && other.topic == message.topic;
  };
  for (auto at = messages_.begin(); bytes_ + size_of(message) > max_bytes_;) {
    at = std::find_if(at, messages_.end(), like);
    if (at == messages_.end()) return false;
    const auto next = std::find_if(std::next(at), messages_.end(), like);
    (next == messages_.end() ? message : *next).discarded += at->discarded + 1;
    bytes_ -= size_of(*at);
    at = messages_.erase(at);
  }
  bytes_ += size_of(message);
  messages_.push_back(std::move(message));
  return true;
}

std::vector<WorkerMessage> MessageQueue::drain() {
  bytes_ = 0;
  std::vector<WorkerMessage> out(std::make_move_iterator(messages_.begin()), std::make_move_iterator(messages_.end()));
  messages_.clear();
  return out;
}

} // namespace triax::control
