// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of communicators: the loaded plugin, with what it declares, and how its ranks
// run.
//
// Threads: the main thread. Ownership: the checks refer to the plugin's library, which is never unloaded. Blocking:
// until a child process has asked the plugin. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

RequestedSuite communicator_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
