// SPDX-License-Identifier: Apache-2.0
// Follows the start of a job at its server: how many ranks have joined and are ready, which are missing, and which
// connections the server rejected.
//
// Threads: one at a time. Ownership: borrows the server. Blocking: as the callbacks. Errors: those of the callbacks.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "control/server.hpp"
#include "report/start_progress.hpp"

namespace triax::launch {

/// The counter of ranks that could take a step (control::Client::add).
inline constexpr const char* kReady = "launch/ready";

/// Callbacks; each may be empty.
struct StartReports {
  /// Ten times a second while ranks start, and once with `over`.
  std::function<void(const report::StartState&)> state;
  /// A line about rejected connections: when there are more, and at most every ten seconds.
  std::function<void(const std::string& line)> warning;
};

class StartTracker {
 public:
  StartTracker(const control::Server& server, int world, StartReports reports);

  /// To be called often: does something at most ten times a second.
  void look();
  /// The start is over, however it ended.
  void finish();
  bool over() const noexcept { return over_; }

 private:
  void warn(std::chrono::steady_clock::time_point now);

  const control::Server& server_;
  const int world_;
  const StartReports reports_;
  bool over_ = false;
  std::int64_t rejected_ = 0; // as the last warning said
  std::chrono::steady_clock::time_point next_look_{}, next_warning_{};
};

} // namespace triax::launch
