// SPDX-License-Identifier: Apache-2.0
// Whether all ranks run the same programs: a digest of a rank's programs is compared through the job's store.
//
// Blocking: waits for rank 0's digest, until the deadline. Errors: Error of a difference, or of the wait.
#pragma once

#include <span>
#include <string>

#include "schedule/program.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

/// Of all actions of all pipeline ranks, in order, and the placement of the stages.
std::string program_digest(std::span<const schedule::Program> programs);

/// Each rank has asked its own scheduler, which may have read a file that differs on another machine. `scheduler` is
/// the plugin that the Error names.
void compare_programs(std::span<const schedule::Program> programs, int rank, const std::string& scheduler, Store& store,
                      Deadline deadline);

} // namespace triax::train
