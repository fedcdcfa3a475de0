// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of planners: the loaded plugin.
//
// Threads: the main thread. Ownership: the checks refer to the plugin's library, which is never unloaded. Blocking:
// never. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

RequestedSuite planner_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
