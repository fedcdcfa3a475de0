// SPDX-License-Identifier: Apache-2.0
// Notes about environment variables that begin with TRIAX_ and that Triax does not read: most likely misspelled.
//
// Threads: none may change the environment.
#pragma once

#include <string>
#include <vector>

namespace triax::app {

/// Whether a launcher started this process as a rank other than 0, from the rank variable alone: the others may be
/// missing or contradictory.
bool is_other_rank();

/// One line per variable; none in a process that Triax's launcher started, and on ranks other than 0.
std::vector<std::string> unknown_variables();

} // namespace triax::app
