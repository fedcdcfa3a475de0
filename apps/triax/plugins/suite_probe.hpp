// SPDX-License-Identifier: Apache-2.0
// Questions to the plugin under test, which decide what its suite has. They are asked in a child process, each call
// with a deadline: a call that crashes or does not return is a refusal with the plugin, the call and the clause.
//
// Threads: the main thread. Ownership: values; the guard refers to the request. Blocking: until the child has answered,
// or one of its calls has exceeded its time. Errors: Error for what a call throws.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "plugins/plugin_suites.hpp"
#include "triax/conformance/probed_call.hpp"

namespace triax::app {

/// Runs `ask` in the child. Returns its answer; empty after a failure, which is added to `refusals`.
std::optional<nlohmann::json> ask_in_child(const SuiteRequest& request, const std::function<nlohmann::json()>& ask,
                                           Refusals& refusals);

/// For the calls in the child: records each with its deadline.
conformance::CallGuard guard_of(const SuiteRequest& request);

/// Refusals of the plugin, with its name.
void add_refusals_of(const SuiteRequest& request, const Refusals& of_plugin, Refusals& refusals);

} // namespace triax::app
