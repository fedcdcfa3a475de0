// SPDX-License-Identifier: Apache-2.0
#include "plugins/optimizer_suite.hpp"

#include "plugin/probe_process.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_plugins.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/optimizer.hpp"
#include "triax/saved_state.hpp"

namespace triax::app {

namespace {

/// Whether the optimizer offers SavedState. Asked in a child process, because a constructor may crash.
bool ask_saved_state(const SuiteRequest& request, Refusals& refusals) {
  const config::PluginChoice& choice = request.choice;
  const plugin::ProbeResult probe = plugin::run_probe(
      [&]() -> std::string {
        const auto optimizer = create_for_suite<Optimizer>(*choice.library, choice.options);
        return find_extension<SavedState>(*optimizer) ? "yes" : "no";
      },
      plugin::ProbeOutput::captured);
  if (probe.failure)
    refusals.add({ErrorCode::kPluginFailed,
                  {},
                  text("{}: {}", choice.name, probe.failure->reason()),
                  probe.failure->hint(choice.library->file)});
  return probe.output == "yes";
}

} // namespace

RequestedSuite optimizer_suite(const SuiteRequest& request, Refusals& refusals) {
  const config::PluginChoice& choice = request.choice;
  conformance::OptimizerSubject subject;
  subject.name = choice.name;
  subject.saves_state = ask_saved_state(request, refusals);
  if (!refusals.empty()) return {};
  subject.optimizer = [library = choice.library, options = choice.options] {
    return create_for_suite<Optimizer>(*library, options);
  };
  for (const char* const name : {"kernels-reference", "kernels-cpu"})
    subject.kernels.push_back(kernels_of_suite(name, request.folders));
  subject.allocations = conformance::allocations;
  return {subject.name + " with kernels-reference and kernels-cpu", conformance::optimizer_checks(subject)};
}

} // namespace triax::app
