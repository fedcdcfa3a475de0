// SPDX-License-Identifier: Apache-2.0
#include "plugins/communicator_suite.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "plugin/probe_answer.hpp"
#include "plugins/gpu_stand_in.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_plugins.hpp"
#include "plugins/suite_probe.hpp"
#include "triax/communicator.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/communicator_checks.hpp"

namespace triax::app {

namespace {

using Ranks = CommTraits::Ranks;

/// Whose devices the ranks have, if the backend refuses memory of the host.
constexpr const char* kDeviceKernels = "kernels-cublas";

CommTraits traits_in(const nlohmann::json& json) {
  CommTraits traits;
  traits.order = static_cast<CommTraits::Order>(json.at("order").get<int>());
  traits.send = static_cast<CommTraits::Send>(json.at("send").get<int>());
  traits.buffered_bytes = json.at("buffered_bytes");
  traits.post = static_cast<CommTraits::Post>(json.at("post").get<int>());
  traits.reduction = static_cast<CommTraits::Reduction>(json.at("reduction").get<int>());
  traits.ranks = static_cast<CommTraits::Ranks>(json.at("ranks").get<int>());
  traits.stream_ordered = json.at("stream_ordered");
  return traits;
}

nlohmann::json answers_of_backend(const SuiteRequest& request) {
  const conformance::CallGuard guard = guard_of(request);
  const auto ask = [&guard](const char* function, const auto& call) {
    return conformance::probe(guard, {CommBackend::kKind, function, "C1"}, call);
  };
  const Layout layout = Layout::ptd(1, request.ranks, 1);
  const auto backend = create_for_suite<CommBackend>(
      *request.choice.library, {request.choice.options, null_log(), layout, 0, 1}, request.choice.folders);
  const CommTraits traits = ask("traits", [&] { return backend->traits(); });
  const bool threads = !request.processes.value_or(traits.ranks == CommTraits::Ranks::one_per_process);
  const auto ask_for = [&](DeviceKind device) {
    const CommRequest wanted{device, {std::string(kTensorAxis)}, threads, true};
    return ask("supports", [&] { return backend->supports(wanted); });
  };
  bool on_gpus = !request.kernels.empty();
  Refusals answer = ask_for(on_gpus ? DeviceKind::cuda : DeviceKind::host);
  if (!on_gpus && !answer.empty() && ask_for(DeviceKind::cuda).empty()) {
    on_gpus = true;
    answer = {};
  }
  return {{"order", traits.order},
          {"send", traits.send},
          {"buffered_bytes", traits.buffered_bytes},
          {"post", traits.post},
          {"reduction", traits.reduction},
          {"ranks", traits.ranks},
          {"stream_ordered", traits.stream_ordered},
          {"on_gpus", on_gpus},
          {"refusals", plugin::refusals_json(answer)}};
}

/// Flags that ask for ranks which the backend cannot join.
void refuse_other_ranks(const SuiteRequest& request, Ranks ranks, Refusals& refusals) {
  const std::string& name = request.choice.name;
  if (request.processes == false && ranks == Ranks::one_per_process)
    refusals.add(make_refusal(ErrorCode::kConflict, {"--threads"}, "--threads: {} needs a process for each rank", name)
                     .with_hint("leave --threads out"));
  if (request.processes == true && ranks == Ranks::same_process)
    refusals.add(make_refusal(ErrorCode::kConflict, {"--processes"},
                              "--processes: {} joins ranks that are threads of one process", name)
                     .with_hint("leave --processes out"));
}

struct BackendAnswers {
  CommTraits traits;
  bool on_gpus = false; // ranks have devices of a kernel set; else the host
};

/// The declarations of the backend. Refused: ranks on this machine.
BackendAnswers ask_backend(const SuiteRequest& request, Refusals& refusals) {
  const auto json = ask_in_child(
      request, [&] { return answers_of_backend(request); }, refusals);
  if (!json) return {};
  const CommTraits traits = traits_in(*json);
  const Refusals answer = plugin::read_refusals(json->at("refusals"));
  if (answer.empty()) refuse_other_ranks(request, traits.ranks, refusals);
  add_refusals_of(request, answer, refusals);
  return {traits, json->at("on_gpus")};
}

/// Why the kernel set has no GPU for each rank.
Refusals refusals_of_devices(const KernelSet& kernels, const std::string& name, int ranks) {
  if (kernels.device_kind() != DeviceKind::cuda)
    return make_refusal(ErrorCode::kConflict, {"--kernels"},
                        "--kernels {} must be a kernel set for GPUs; its device "
                        "is the host",
                        name)
        .with_hint("leave --kernels out, or name a kernel set that computes on GPUs");
  Refusals out;
  for (const Refusal& refusal : kernels.device_available({.local_rank = ranks - 1, .local_ranks = ranks}))
    out.add(make_refusal(refusal.code, {}, "{}: {}", name, refusal.message)
                .with_hint("each rank needs a GPU (--ranks {}): {}", ranks, gpu_stand_in_hint()));
  return out;
}

/// Devices for ranks, made by the kernel set.
std::function<std::unique_ptr<Device>(int)> devices_of(const SuiteRequest& request, const std::string& name,
                                                       Refusals& refusals) {
  const auto kernels = kernels_of_flag(name, request.folders, refusals);
  if (!refusals.empty()) return {};
  const auto json = ask_in_child(
      request, [&] { return plugin::refusals_json(refusals_of_devices(*kernels(), name, request.ranks)); }, refusals);
  if (!json) return {};
  refusals.add(plugin::read_refusals(*json));
  return [kernels, ranks = request.ranks](int rank) {
    return kernels()->make_device({.local_rank = rank, .local_ranks = ranks});
  };
}

} // namespace

RequestedSuite communicator_suite(const SuiteRequest& request, Refusals& refusals) {
  conformance::CommunicatorSubject subject;
  subject.name = request.choice.name;
  const std::string kernels = request.kernels.empty() ? kDeviceKernels : request.kernels;
  if (!request.kernels.empty()) subject.setup.device = devices_of(request, kernels, refusals);
  if (!refusals.empty()) return {};
  const BackendAnswers answers = ask_backend(request, refusals);
  if (!refusals.empty()) return {};
  if (answers.on_gpus && !subject.setup.device) subject.setup.device = devices_of(request, kernels, refusals);
  if (!refusals.empty()) return {};
  subject.traits = answers.traits;
  subject.max_group = request.ranks;
  subject.allocations = conformance::allocations;
  subject.setup.options = request.choice.options;
  subject.setup.timeout_s = request.timeout_s;
  subject.setup.processes = request.processes.value_or(subject.traits.ranks == Ranks::one_per_process);
  subject.setup.backend = [choice = request.choice](const PluginContext& context) {
    return create_for_suite<CommBackend>(*choice.library, context, choice.folders);
  };
  const std::string ranks = subject.setup.processes ? "processes" : "threads";
  return {text("{}, up to {} ranks as {}{}", subject.name, request.ranks, ranks,
               answers.on_gpus ? text(" with devices of {}", kernels) : ""),
          conformance::communicator_checks(subject)};
}

} // namespace triax::app
