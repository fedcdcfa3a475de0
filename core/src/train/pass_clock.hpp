// Times the passes of one step of a rank.
//
// Threads: the rank's main thread. Ownership: borrows program and next observer. Blocking: never; between the first and
// the last action it allocates nothing. On the host a pass runs inside its action; where a device runs behind, what is
// timed is the enqueuing. Errors: none of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/walk_observer.hpp"
#include "schedule/measured.hpp"

namespace triax::train {

class PassClock final : public executor::WalkObserver {
 public:
  /// `next` is told as well; it may be null.
  PassClock(const schedule::Program& program, std::int64_t step, executor::WalkObserver* next);

  void walk_begins(std::int64_t step) override;
  void ran(ActionId action, const executor::PassTime& time) override;
  void walk_ends(std::int64_t step) override;

  std::int64_t step() const { return step_; }
  /// Of that step, in milliseconds of the machine's steady clock; nothing before it has ended.
  const std::vector<schedule::MeasuredPass>& passes() const { return passes_; }

 private:
  const schedule::Program& program_;
  const std::int64_t step_;
  executor::WalkObserver* const next_;
  std::vector<schedule::MeasuredPass> passes_;
  bool running_ = false;
};

} // namespace triax::train
