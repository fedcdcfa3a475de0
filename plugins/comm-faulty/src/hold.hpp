// SPDX-License-Identifier: Apache-2.0
// A host task in front of a call of the wrapped communicator. It holds the call back, so that its buffers are read and
// written late, or never: a caller that does not wait for the event gets wrong data.
//
// A call that fails without its turn (C32) ends the hold, and so does an abort.
#pragma once

#include <atomic>
#include <cstdint>
#include <triax/device.hpp>

#include "pooled_task.hpp"

namespace triax::comm_faulty {

/// The state that the holds of a communicator share with it.
struct Holding {
  std::atomic<bool> is_over{false}; // aborted, or the communicator is destroyed: no call is held any more
  std::uint64_t newest_begun = 0;   // the highest number of a call that has begun
};

/// When a held call begins.
enum class Until : std::uint8_t {
  now,
  elapsed,   // after a time
  overtaken, // when a call that was posted later has begun, or after a time
  aborted,
  never // not even then: the task never returns
};

class Hold final : public PooledTask {
 public:
  explicit Hold(Holding& shared) : shared_(shared) {}

  void start(Until until, std::uint64_t number, Clock::duration time) noexcept;
  /// The call behind it. Its event fires before the hold has ended only if the call has failed.
  void set_call(const Event& call) noexcept;
  /// There is no call behind it.
  void release() noexcept { is_released_ = true; }

  bool advance() noexcept override;
  void dropped() noexcept override { finish(); }

 private:
  bool may_begin() noexcept;

  Holding& shared_;
  Until until_ = Until::now;
  std::uint64_t number_ = 0;
  Clock::duration time_{};
  Clock::time_point due_{};
  Event call_;
  bool is_released_ = false, has_call_ = false, is_timed_ = false;
};

} // namespace triax::comm_faulty
