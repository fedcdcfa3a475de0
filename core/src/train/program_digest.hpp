// SPDX-License-Identifier: Apache-2.0
// Checks that all ranks run the same programs, by comparing digests through the job's store.
//
// Blocking: waits for rank 0's digest until the deadline. Errors: Error for a difference, or of the wait.
#pragma once

#include <span>
#include <string>

#include "schedule/program.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

/// Digest of all actions of all pipeline ranks, in order, and of the stage map.
std::string program_digest(std::span<const schedule::Program> programs);

/// Each rank calls its own scheduler, which may read a file that differs between machines. `scheduler`: the plugin's
/// name, for the Error.
void compare_programs(std::span<const schedule::Program> programs, int rank, const std::string& scheduler, Store& store,
                      Deadline deadline);

} // namespace triax::train
