// Signals stay the program's: UCX takes SIGSEGV and its like to print a backtrace, and SIGHUP for a debugging aid, as
// soon as its library is loaded, so that a terminal that closes would no longer end a run.
//
// Threads: any. Ownership: none. Blocking: never. Errors: none. Where the user's environment says what UCX should do
// with signals (UCX_HANDLE_ERRORS, UCX_ERROR_SIGNALS, UCX_DEBUG_SIGNO), that stands.
#pragma once

namespace comm_ucx {

void leave_signals_alone() noexcept;

} // namespace comm_ucx
