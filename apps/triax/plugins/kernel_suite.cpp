// SPDX-License-Identifier: Apache-2.0
#include "plugins/kernel_suite.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "plugins/suite_object.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/kernels.hpp"

namespace triax::app {

namespace {

using conformance::KernelAnswers;

struct KernelProbe {
  KernelAnswers answers;
  Refusals refusals; // of the device, or the failure of the plugin
};

std::string ask_in_child(const SuiteRequest& request) {
  const auto kernels = create_for_suite<KernelSet>(*request.choice.library, request.choice.options);
  const KernelAnswers answers = conformance::ask_kernels(*kernels);
  return plugin::pack({{"device", answers.device},
                       {"computes", answers.computes},
                       {"types", answers.types},
                       {"refused", answers.refused},
                       {"unavailable", plugin::refusals_json(kernels->device_available({}))}});
}

/// What to do where the device is missing. The set's own hint is about a training run.
std::string hint_for(DeviceKind device) {
  if (device != DeviceKind::cuda) return "run the suite on a machine with this device";
  return "run the suite on a machine with a GPU, or in the source tree with scripts/gpu-stand-in, which runs GPU code "
         "on the host";
}

KernelProbe probe_kernels(const SuiteRequest& request) {
  KernelProbe out;
  const std::string& name = request.choice.name;
  const plugin::ProbeResult probe =
      plugin::run_probe([&] { return ask_in_child(request); }, plugin::ProbeOutput::captured);
  if (probe.failure) {
    out.refusals.add({ErrorCode::kPluginFailed,
                      {},
                      text("{}: {}", name, probe.failure->reason()),
                      probe.failure->hint(request.choice.library->file)});
    return out;
  }
  const nlohmann::json json = plugin::unpack(probe.output);
  out.answers.device = json.at("device").get<DeviceKind>();
  out.answers.computes = json.at("computes");
  out.answers.types = json.at("types").get<std::vector<DType>>();
  out.answers.refused = json.at("refused").get<std::map<std::string, std::string>>();
  for (const Refusal& refusal : plugin::read_refusals(json.at("unavailable")))
    out.refusals.add({refusal.code, {}, text("{}: {}", name, refusal.message), hint_for(out.answers.device)});
  return out;
}

/// Whether the number of threads is an option of the plugin.
bool has_threads_option(const plugin::Library& library) {
  return std::ranges::any_of(library.options, [](const triax_option& option) {
    return std::string_view(option.name) == "threads" && option.type == TRIAX_OPTION_INT;
  });
}

} // namespace

RequestedSuite kernel_suite(const SuiteRequest& request, Refusals& refusals) {
  const config::PluginChoice& choice = request.choice;
  KernelProbe probe = probe_kernels(request);
  refusals.add(probe.refusals);
  if (!refusals.empty()) return {};
  conformance::KernelSubject subject;
  subject.name = choice.name;
  subject.answers = std::move(probe.answers);
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
