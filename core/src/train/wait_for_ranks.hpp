// SPDX-License-Identifier: Apache-2.0
// A call that blocks until other ranks have done something, such as Store::get(), as a wait of the calling rank that
// has no deadline: the other ranks may write a checkpoint for hours.
//
// Threads: a rank's main thread; the call runs on another one. Blocking: until the call returns. It must end when the
// job is aborted, by an exception. Errors: the call's; Error if no thread can be started.
#pragma once

#include <chrono>
#include <future>
#include <utility>

#include "base/start_thread.hpp"
#include "triax/device.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

/// For waits that end when the job is aborted: seconds, and a moment that is as far away.
/// @{
inline constexpr double kNoTimeout = 1e9;
inline Deadline no_deadline() {
  return deadline_in(kNoTimeout);
}
/// @}

/// The watchdog and the job server see the wait, and end the job once all of its ranks wait.
template <class Call>
auto wait_for_ranks(Call call) {
  constexpr std::chrono::milliseconds kPoll{50};
  auto result = start_thread("the thread that waits for other ranks",
                             [&] { return std::async(std::launch::async, std::move(call)); });
  const PolledWait wait;
  while (result.wait_for(kPoll) != std::future_status::ready) wait.poll();
  return result.get();
}

} // namespace triax::train
