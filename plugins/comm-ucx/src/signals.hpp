// SPDX-License-Identifier: Apache-2.0
// Disables UCX's signal handlers. When its library is loaded, UCX takes SIGSEGV and similar signals to print a
// backtrace, and SIGHUP for a debugging aid; a terminal that closes would then no longer end a run.
//
// Threads: any. Environment variables for UCX's signals (UCX_HANDLE_ERRORS, UCX_ERROR_SIGNALS, UCX_DEBUG_SIGNO) have
// precedence.
#pragma once

namespace triax::comm_ucx {

void leave_signals_alone() noexcept;

} // namespace triax::comm_ucx
