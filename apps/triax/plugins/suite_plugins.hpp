// SPDX-License-Identifier: Apache-2.0
// The plugins that suites of other kinds use: kernel sets and communicators, with the defaults of their options.
//
// Threads: the main thread; what is returned: any. Ownership: libraries are never unloaded. Blocking: loads the plugin,
// for the first time in a child process. Errors: Error if it is not found, does not load, or is of another kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/kernels.hpp"

namespace triax::app {

/// `name`: of the plugin, or a path of its file. `folders`: --path.
std::function<conformance::Object<KernelSet>()> kernels_of_suite(const std::string& name,
                                                                 const std::vector<std::string>& folders);
/// The kernel set of --kernels. Adds refusals instead of throwing an error; then the function is empty.
std::function<conformance::Object<KernelSet>()> kernels_of_flag(const std::string& name,
                                                                const std::vector<std::string>& folders,
                                                                Refusals& refusals);
std::function<conformance::Object<CommBackend>(const PluginContext&)> backend_of_suite(
    const std::string& name, const std::vector<std::string>& folders);

} // namespace triax::app
