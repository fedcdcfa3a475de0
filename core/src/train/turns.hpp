// SPDX-License-Identifier: Apache-2.0
// A run that takes turns with another one (`triax compare`): before a step, each rank waits until the comparing process
// lets the run continue. The side that waits leaves the processor to the other.
//
// The ranks connect to the comparing process and send a line of JSON when they wait; the answer gives the last step of
// the turn, and the step whose timeline is recorded, or ends the run. All ranks wait before the same steps, because all
// get the same answers.
//
// Threads: the rank's main thread. Ownership: owns its connection. Blocking: await(), until the turn begins. Errors:
// Error with the name of the connection; await() also if the job is aborted, or the comparing process has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/local_socket.hpp"
#include "train/training_rank.hpp"

namespace triax::train {

class Turns {
 public:
  /// `name`: where the comparing process listens. `run` must outlive this object.
  Turns(const std::string& name, const config::RunConfig& run, int rank)
      : connection_(os::LocalConnection::to(name)), run_(run), rank_(rank) {}

  /// Call it before each step, and after the last. Runs the progress loop while it waits, because other ranks may need
  /// messages of this one to end their step. Returns false if the comparing process ends the run.
  bool await(Rank& rank, const AbortFlag& aborted);

 private:
  void report(Rank& rank);

  os::LocalConnection connection_;
  const config::RunConfig& run_;
  const int rank_;
  std::int64_t until_ = 0; // the last step of the turn
};

/// The variable that names the connection.
inline constexpr const char* kTurnsVariable = "TRIAX_TURNS";

} // namespace triax::train
