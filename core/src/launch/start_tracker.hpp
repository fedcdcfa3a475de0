// SPDX-License-Identifier: Apache-2.0
// Tracks the start of a job at its server: how many ranks have joined and are ready, which are missing, and which
// connections the server rejected.
//
// Ownership: borrows the server. Blocking and errors: those of the callbacks.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "control/server.hpp"
#include "report/start_progress.hpp"
#include "triax/text.hpp"

namespace triax::launch {

/// Counter of the ranks that are ready for their first step (control::Client::add).
inline constexpr const char* kReady = "launch/ready";
/// The counter of one rank, before it counts itself in kReady.
inline std::string ready_key(int rank) {
  return text("{}/{}", kReady, rank);
}

/// Each callback may be empty.
struct StartReports {
  /// Called ten times a second while ranks start, and once with `over`.
  std::function<void(const report::StartState&)> state;
  /// A line about rejected connections: if there are new ones, and at most every ten seconds.
  std::function<void(const std::string& line)> warning;
};

class StartTracker {
 public:
  StartTracker(const control::Server& server, int world, StartReports reports);

  /// Call it often; it acts at most ten times a second.
  void look();
  /// Ends the start, whether or not all ranks are ready.
  void finish();
  bool over() const noexcept { return over_; }

 private:
  std::string not_ready() const;
  void warn(std::chrono::steady_clock::time_point now);

  const control::Server& server_;
  const int world_;
  const StartReports reports_;
  bool over_ = false;
  std::int64_t rejected_ = 0; // as of the last warning
  std::chrono::steady_clock::time_point next_look_{}, next_warning_{};
};

} // namespace triax::launch
