// SPDX-License-Identifier: Apache-2.0
// Records one step of a rank: when each action of its program ran, what was posted to its communicators and when that
// completed. Communicators are observed through TracedCommunicator.
//
// Threads: the rank's main thread. Ownership: borrows program, next observer and compute stream; it must outlive the
// streams that calls are posted on. Blocking: never; between the first and the last action it allocates nothing from
// the second step on. Errors: none of its own.
//
// On the host an action runs inside its time, and a call completes where its stream gets past it. Where a device runs
// behind, what is timed is the enqueuing, of calls too.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "executor/walk_observer.hpp"
#include "report/timeline_file.hpp"
#include "schedule/program.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

/// What a call moves, as it is known when it is posted.
struct CallShape {
  const char* name = nullptr; // "all_reduce"
  const char* axis = nullptr; // lives as long as the communicator
  int peer = -1;              // a rank of the run; -1: the group, or several
  std::size_t bytes = 0;
};

class StepTrace final : public executor::WalkObserver {
 public:
  /// `next` is told as well; it may be null. `behind`: the device runs behind the host.
  StepTrace(const schedule::Program& program, std::int64_t step, bool behind, executor::WalkObserver* next);

  /// Calls posted on this stream are waited for before anything else is computed.
  void set_compute(const Stream& stream) { compute_ = &stream; }

  void walk_begins(std::int64_t step) override;
  void ran(ActionId action, const executor::ActionTime& time) override;
  void walk_ends(std::int64_t step) override;

  /// Whether calls are recorded now; where not, they are counted, so that there is room when they are.
  bool records_call() {
    ++calls_posted_;
    return running_;
  }
  /// `posted`: before the call. Puts a mark behind the call on its stream.
  void called(const CallShape& shape, Clock::time_point posted, const Work& work, Stream& stream);

  std::int64_t step() const { return step_; }
  /// Of that step; nothing before it has ended. Rank, ranks and machine are the caller's to fill in.
  report::RankTimeline timeline() const;

 private:
  struct Action {
    ActionId id = 0;
    executor::ActionTime time;
  };
  /// Follows its call on the stream.
  struct Call final : HostTask {
    bool advance() noexcept override {
      if (!work.event.fired()) return false;
      completed = Clock::now();
      return true;
    }
    CallShape shape;
    Work work;
    Clock::time_point posted, completed;
    bool awaited = false;
  };

  report::MeasuredCall measured(const Call& call) const;
  std::vector<report::MeasuredWait> waits() const;
  report::MeasuredWait wait_before(const Action& action) const;

  const schedule::Program& program_;
  const std::int64_t step_;
  const bool behind_;
  executor::WalkObserver* const next_;
  const Stream* compute_ = nullptr;
  bool running_ = false;
  std::size_t calls_posted_ = 0; // in this walk, or since the one before
  Clock::time_point began_, ended_;
  std::vector<Action> actions_;
  std::deque<Call> calls_; // stay where they are: streams refer to them
  std::size_t used_ = 0;   // of calls_
};

} // namespace triax::train
