// SPDX-License-Identifier: Apache-2.0
// Finds the plugin in which a probe process crashed. This also covers crashes in calls that the engine does not
// record, such as those between a layer and a kernel set.
//
// Threads: the handler runs on the thread that crashed. Errors: none; if the stack has no frame of a plugin, nothing is
// recorded.
#pragma once

#include "plugin/plugin_call.hpp"

namespace triax::plugin {

/// Installs signal handlers. On a fault, the handler writes the library of the innermost stack frame that may be a
/// plugin's to `record.fault_file`, then takes the default action of the signal. Signals that have a handler (of a
/// sanitizer) are not changed.
void install_fault_handlers(CallRecord& record) noexcept;

} // namespace triax::plugin
