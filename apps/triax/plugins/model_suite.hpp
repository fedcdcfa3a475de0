// SPDX-License-Identifier: Apache-2.0
// The subject of the conformance suite of models: the loaded plugin with the options of a small model, the kernel set
// of --kernels, and comm-local between ranks that are threads.
//
// Threads: the main thread. Ownership: the checks refer to libraries, which are never unloaded. Blocking: loads
// plugins, and asks the model in a child process. Errors: refusals.
#pragma once

#include "plugins/plugin_suites.hpp"

namespace triax::app {

/// Options of a small model: sizes that have no default and are not set, by their usual names, and a dropout rate.
std::vector<config::Override> small_model_settings(const plugin::Library& library,
                                                   const std::vector<config::Override>& given);

RequestedSuite model_suite(const SuiteRequest& request, Refusals& refusals);

} // namespace triax::app
