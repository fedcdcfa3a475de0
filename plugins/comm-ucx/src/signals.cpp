// SPDX-License-Identifier: Apache-2.0
#include "signals.hpp"

#include <csignal>
#include <cstdlib>
#include <mutex>
extern "C" {
#include <ucs/debug/debug.h>
}

namespace triax::comm_ucx {

void leave_signals_alone() noexcept {
  for (const char* variable : {"UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS", "UCX_DEBUG_SIGNO"})
    if (std::getenv(variable)) return;
  static std::once_flag once; // UCX's settings are per process
  std::call_once(once, [] {
    for (const int signal : {SIGHUP, SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
  });
}

} // namespace triax::comm_ucx
