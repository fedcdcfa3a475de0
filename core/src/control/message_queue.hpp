// SPDX-License-Identifier: Apache-2.0
// Messages of the ranks that the server's process has not read yet. The queue has a limit, because a process whose
// output is blocked (a stopped terminal, a full pipe) may not read for hours.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "control/server.hpp"

namespace triax::control {

class MessageQueue {
 public:
  explicit MessageQueue(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// If the queue is full, discards the oldest messages with the same rank and topic, and counts them in the next
  /// message that remains. Returns false if there are not enough of them; the message is then not added.
  [[nodiscard]] bool add(WorkerMessage message);
  /// All messages, in order.
  std::vector<WorkerMessage> drain();

 private:
  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::deque<WorkerMessage> messages_;
};

} // namespace triax::control
