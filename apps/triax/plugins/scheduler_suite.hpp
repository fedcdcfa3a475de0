// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of schedulers: the loaded plugin, its options at their limits, and the verifier
// of the engine.
//
// Threads: the main thread. Ownership: the checks refer to the plugin's library, which is never unloaded. Blocking:
// never. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

RequestedSuite scheduler_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
