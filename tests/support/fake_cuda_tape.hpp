// SPDX-License-Identifier: Apache-2.0
// The fake's CUDA graph: the items of all streams in the order of their capture, with the events between them.
//
// Threads: the rank's main thread. Ownership: refers to lanes, which the device owns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/fake_cuda_lane.hpp"
#include "triax/recording.hpp"

namespace triax::test::fake_cuda {

/// State of events recorded during a capture. Streams may wait for them; other waits see them fired after the end.
class TapeMarks final : public EventState {
 public:
  Event next() { return {this, ++given_}; }
  void end() noexcept { ended_ = true; }
  bool fired(std::uint64_t) noexcept override { return ended_; }
  const char* failure(std::uint64_t) const noexcept override { return nullptr; }

 private:
  std::uint64_t given_ = 0;
  std::atomic<bool> ended_{false};
};

class Tape {
 public:
  void put(Lane& lane, Item item) { entries_.push_back({&lane, std::move(item), 0, 0}); }
  Event record(Lane& lane) {
    const Event mark = marks_->next();
    entries_.push_back({&lane, {}, mark.generation(), 0});
    return mark;
  }
  /// True if the event belongs to this tape. Otherwise the wait would be for work outside the capture.
  bool wait(Lane& lane, const Event& event) {
    if (event.state() != marks_.get()) return false;
    entries_.push_back({&lane, {}, 0, event.generation()});
    return true;
  }
  void end() noexcept { marks_->end(); }
  /// Enqueues all items again.
  void play() const;

 private:
  struct Entry {
    Lane* lane;
    Item item;
    std::uint64_t marks, waits; // 0: neither
  };
  std::shared_ptr<TapeMarks> marks_ = std::make_shared<TapeMarks>();
  std::vector<Entry> entries_;
};

} // namespace triax::test::fake_cuda
