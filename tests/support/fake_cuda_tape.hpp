// What the fake CUDA device records in place of a graph: the items of all its streams in the order in which they were
// put, with the events that lead from one to another.
//
// Threads: the rank's main thread. Ownership: refers to lanes, which are the device's. Blocking: never.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/fake_cuda_lane.hpp"
#include "triax/recording.hpp"

namespace triax::test::fake_cuda {

/// The state of events recorded while a tape runs: streams may wait for them; nobody else, until the end.
class TapeMarks final : public EventState {
 public:
  TapeMarks() : EventState(Class::device) {}
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
  /// Whether the event is of this tape; else its waiting would be for something that is not recorded.
  bool wait(Lane& lane, const Event& event) {
    if (event.state() != marks_.get()) return false;
    entries_.push_back({&lane, {}, 0, event.generation()});
    return true;
  }
  void end() noexcept { marks_->end(); }
  /// Puts everything again.
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
