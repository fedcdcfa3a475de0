// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of kernel sets: the loaded plugin with its options, and what it answers before
// it has a device.
//
// Threads: the main thread. Ownership: the checks refer to the plugin's library, which is never unloaded. Blocking:
// until a child process has asked the plugin. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

RequestedSuite kernel_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
