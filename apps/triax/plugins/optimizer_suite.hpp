// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of optimizers: the loaded plugin, and the kernel sets of the host:
// kernels-reference, and kernels-cpu for the types that it does not have.
//
// Threads: the main thread. Ownership: the checks refer to libraries, which are never unloaded. Blocking: loads the
// kernel sets, and asks the plugin in a child process. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

RequestedSuite optimizer_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
