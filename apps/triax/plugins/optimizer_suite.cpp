// SPDX-License-Identifier: Apache-2.0
#include "plugins/optimizer_suite.hpp"

#include <nlohmann/json.hpp>

#include "plugins/suite_object.hpp"
#include "plugins/suite_plugins.hpp"
#include "plugins/suite_probe.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/optimizer_checks.hpp"
#include "triax/saved_state.hpp"

namespace triax::app {

namespace {

/// Whether the optimizer offers SavedState.
bool ask_saved_state(const SuiteRequest& request, Refusals& refusals) {
  const auto ask = [&]() -> nlohmann::json {
    const auto optimizer = create_for_suite<Optimizer>(*request.choice.library, request.choice.options);
    return conformance::probe(guard_of(request), {Optimizer::kKind, "extension", "O19"},
                              [&] { return find_extension<SavedState>(*optimizer) != nullptr; });
  };
  return ask_in_child(request, ask, refusals) == nlohmann::json(true);
}

} // namespace

RequestedSuite optimizer_suite(const SuiteRequest& request, Refusals& refusals) {
  const config::PluginChoice& choice = request.choice;
  conformance::OptimizerSubject subject;
  subject.name = choice.name;
  subject.saves_state = ask_saved_state(request, refusals);
  if (!refusals.empty()) return {};
  subject.options = choice.options;
  subject.optimizer = [library = choice.library](const PluginContext& context) {
    return create_for_suite<Optimizer>(*library, context);
  };
  for (const char* const name : {"kernels-reference", "kernels-cpu"})
    subject.kernels.push_back(kernels_of_suite(name, request.folders));
  subject.ranks.backend = backend_of_suite("comm-local", request.folders);
  subject.ranks.timeout_s = request.timeout_s;
  subject.allocations = conformance::allocations;
  return {subject.name + " with kernels-reference and kernels-cpu", conformance::optimizer_checks(subject)};
}

} // namespace triax::app
