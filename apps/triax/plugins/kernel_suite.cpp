// SPDX-License-Identifier: Apache-2.0
#include "plugins/kernel_suite.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "plugin/probe_answer.hpp"
#include "plugins/gpu_stand_in.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_probe.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/kernel_checks.hpp"

namespace triax::app {

namespace {

using conformance::KernelAnswers;

nlohmann::json answers_of_kernels(const SuiteRequest& request) {
  const conformance::CallGuard guard = guard_of(request);
  const auto kernels = create_for_suite<KernelSet>(*request.choice.library, request.choice.options);
  const KernelAnswers answers = conformance::ask_kernels(*kernels, guard);
  const Refusals unavailable = conformance::probe(guard, {KernelSet::kKind, "device_available", "K4"},
                                                  [&] { return kernels->device_available({}); });
  return {{"device", answers.device},   {"computes", answers.computes},
          {"types", answers.types},     {"refused", answers.refused},
          {"repeats", answers.repeats}, {"unavailable", plugin::refusals_json(unavailable)}};
}

/// The next step if the device is missing. The set's own hint is about a training run.
std::string hint_for(DeviceKind device) {
  return device == DeviceKind::cuda ? gpu_stand_in_hint() : "run the suite on a machine with this device";
}

KernelAnswers ask_kernel_set(const SuiteRequest& request, Refusals& refusals) {
  const auto json = ask_in_child(
      request, [&] { return answers_of_kernels(request); }, refusals);
  if (!json) return {};
  Refusals unavailable;
  KernelAnswers out{json->at("device").get<DeviceKind>(), json->at("computes"),
                    json->at("types").get<std::vector<DType>>(),
                    json->at("refused").get<std::map<std::string, std::string>>(), json->at("repeats")};
  for (const Refusal& refusal : plugin::read_refusals(json->at("unavailable")))
    unavailable.add({refusal.code, {}, refusal.message, hint_for(out.device)});
  add_refusals_of(request, unavailable, refusals);
  return out;
}

/// Whether the number of threads is an option of the plugin.
bool has_threads_option(const plugin::Library& library) {
  const triax_option* const option = plugin::find_option(library, "threads");
  return option && option->type == TRIAX_OPTION_INT;
}

} // namespace

RequestedSuite kernel_suite(const SuiteRequest& request, Refusals& refusals) {
  const config::PluginChoice& choice = request.choice;
  conformance::KernelSubject subject;
  subject.name = choice.name;
  subject.answers = ask_kernel_set(request, refusals);
  if (!refusals.empty()) return {};
  subject.kernels = [library = choice.library, options = choice.options] {
    return create_for_suite<KernelSet>(*library, options);
  };
  if (has_threads_option(*choice.library))
    subject.with_threads = [library = choice.library, options = choice.options](int threads) {
      // The object may keep its context, so the options stay with it.
      const auto changed = std::make_shared<Options>(options);
      changed->set("threads", std::int64_t{threads});
      auto made = create_for_suite<KernelSet>(*library, *changed);
      const auto destroy = made.get_deleter();
      return conformance::Object<KernelSet>(made.release(), [destroy, changed](KernelSet* object) { destroy(object); });
    };
  subject.allocations = conformance::allocations_of_all_threads;
  return {subject.name, conformance::kernel_checks(subject)};
}

} // namespace triax::app
