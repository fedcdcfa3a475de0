// SPDX-License-Identifier: Apache-2.0
// The processes of a launcher's ranks, which are this program again: their variables, their output, and their ends.
//
// Threads: one, which has started the processes. Ownership: borrows its arguments. Blocking: only pass_output(), for at
// most its time. Errors: none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/job_token.hpp"
#include "control/server.hpp"
#include "os/child_process.hpp"

namespace triax::launch {

/// torchrun's variables for a rank of this machine, the job's token, and TRIAX_LAUNCHER: this process.
std::vector<os::Variable> rank_variables(const os::Address& server, const control::JobToken& token, int rank,
                                         int world);

/// Whether all have ended. `children`: by rank. The server learns of those that did not end well; that counts only if
/// the rank has not reported a failure itself.
bool have_ended(std::vector<os::Child>& children, control::Server& server);

/// Waits for output for up to timeout_ms, and passes on all lines that are there. `output` may be empty.
void pass_output(std::vector<os::Child>& children, int timeout_ms,
                 const std::function<void(int rank, const std::string& line)>& output);

} // namespace triax::launch
