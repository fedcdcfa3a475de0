// SPDX-License-Identifier: Apache-2.0
// Records steps of a rank, one at a time: when each action of its program ran, when each communicator call was posted,
// and when it completed. TracedCommunicator reports the calls.
//
// Threads: the rank's main thread. Ownership: borrows program, next observer and compute stream; must outlive the
// streams of the calls.
//
// From the second step on, it does not allocate between the first and the last action.
//
// On the host, an action runs during the measured time, and a call completes when its stream has passed it. On devices
// that run asynchronously, only the enqueuing of actions and calls is measured.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string_view>
#include <vector>

#include "executor/walk_observer.hpp"
#include "report/timeline_file.hpp"
#include "schedule/program.hpp"
#include "triax/communicator.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// The data that a call moves, known when it is posted.
struct CallShape {
  const char* name = nullptr; // "all_reduce"
  const char* axis = nullptr; // valid while the communicator exists
  int peer = -1;              // a rank of the run; -1: the group, or several ranks
  std::size_t bytes = 0;
};

class StepTrace final : public executor::WalkObserver {
 public:
  /// `next` gets the same calls; may be null. `behind`: the device runs asynchronously to the host.
  /// `step`: the step to record; 0: none yet.
  StepTrace(const schedule::Program& program, std::int64_t step, bool behind, executor::WalkObserver* next);

  /// Records this later step instead. Allocates.
  void set_step(std::int64_t step);

  /// Calls that are posted on this stream complete before the next computation.
  void set_compute(const Stream& stream) { compute_ = &stream; }

  void walk_begins(std::int64_t step) override;
  void ran(ActionId action, const executor::ActionTime& time) override;
  void walk_ends(std::int64_t step) override;

  /// Whether calls are recorded now. If not, counts them, to reserve space for the recorded step.
  bool records_call() {
    ++calls_posted_;
    return running_;
  }
  /// `posted`: time before the call. Enqueues a marker after the call on its stream.
  void called(const CallShape& shape, Clock::time_point posted, const Work& work, Stream& stream);

  std::int64_t step() const { return step_; }
  /// The recorded step; empty before its end. The caller sets rank, number of ranks and machine.
  report::RankTimeline timeline() const;
  /// Writes it to the run's folder. If that fails, logs the reason and returns false.
  bool write(const std::filesystem::path& folder, int rank, int ranks, Log& log) const;

 private:
  struct Action {
    ActionId id = 0;
    executor::ActionTime time;
  };
  /// Marker after a call on its stream.
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
  std::int64_t step_;
  const bool behind_;
  executor::WalkObserver* const next_;
  const Stream* compute_ = nullptr;
  bool running_ = false;
  std::size_t calls_posted_ = 0; // in this step, or since the previous one
  Clock::time_point began_, ended_;
  std::vector<Action> actions_;
  std::deque<Call> calls_;        // fixed addresses: streams refer to the elements
  std::size_t used_ = 0;          // used elements of calls_
  std::deque<Call> calls_before_; // calls of the step recorded before: streams may still refer to them
};

} // namespace triax::train
