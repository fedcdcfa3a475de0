// SPDX-License-Identifier: Apache-2.0
// Finds the plugin whose code a probe process was in when it crashed: calls that the engine does not record one by one,
// as those between a layer and a kernel set, are named too.
//
// Threads: the handler runs on the thread that crashed. Ownership: none. Blocking: never. Errors: none; without a frame
// of a plugin on the stack nothing is recorded.
#pragma once

#include <csignal>

#include "plugin/plugin_call.hpp"

namespace triax::plugin {

/// Signals that a process sends itself by a defect.
inline constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

/// From now on a fault of this process writes the library of the innermost stack frame that may be a plugin's to
/// `record.fault_file`, and then ends the process as before. Signals with a handler (of a sanitizer) are left alone.
void record_faults(CallRecord& record) noexcept;

} // namespace triax::plugin
