// SPDX-License-Identifier: Apache-2.0
#include "plugins/plugin_suites.hpp"

#include <nlohmann/json.hpp>

#include "plugin/call_guard.hpp"
#include "plugin/loader.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "plugins/kernel_suite.hpp"
#include "plugins/model_suite.hpp"
#include "plugins/optimizer_suite.hpp"
#include "plugins/scheduler_suite.hpp"
#include "plugins/suite_object.hpp"
#include "triax/communicator.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

namespace {

/// What a backend declares, and why it refuses ranks on this machine's host.
struct BackendAnswer {
  CommTraits traits;
  Refusals refusals;
};

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

std::string ask_backend(const SuiteRequest& request) {
  const Layout layout = Layout::ptd(1, request.ranks, 1);
  const std::string& name = request.choice.name;
  const auto backend = plugin::create<CommBackend>(
      *request.choice.library, {request.choice.options, null_log(), layout, 0, 1}, request.choice.folders);
  const CommTraits traits = plugin::guarded_call(name, "traits", [&] { return backend->traits(); });
  const bool threads = !request.processes.value_or(traits.ranks == CommTraits::Ranks::one_per_process);
  const CommRequest wanted{DeviceKind::host, {DType::f32}, {std::string(kTensorAxis)}, threads, true};
  const Refusals answer = plugin::guarded_call(name, "supports", [&] { return backend->supports(wanted); });
  return plugin::pack({{"order", traits.order},
                       {"send", traits.send},
                       {"buffered_bytes", traits.buffered_bytes},
                       {"post", traits.post},
                       {"reduction", traits.reduction},
                       {"ranks", traits.ranks},
                       {"stream_ordered", traits.stream_ordered},
                       {"refusals", plugin::refusals_json(answer)}});
}

BackendAnswer answer_of(const SuiteRequest& request) {
  BackendAnswer out;
  const plugin::ProbeResult probe =
      plugin::run_probe([&] { return ask_backend(request); }, plugin::ProbeOutput::captured);
  if (probe.failure) {
    out.refusals.add({ErrorCode::kPluginFailed,
                      {},
                      text("{}: {}", request.choice.name, probe.failure->reason()),
                      probe.failure->hint(request.choice.library->file)});
    return out;
  }
  const nlohmann::json json = plugin::unpack(probe.output);
  out.traits = traits_in(json);
  for (const Refusal& refusal : plugin::read_refusals(json.at("refusals")))
    out.refusals.add({refusal.code, {}, text("{}: {}", request.choice.name, refusal.message), refusal.hint});
  return out;
}

RequestedSuite communicator_suite(const SuiteRequest& request, Refusals& refusals) {
  const BackendAnswer answer = answer_of(request);
  using Ranks = CommTraits::Ranks;
  if (answer.refusals.empty() && request.processes == false && answer.traits.ranks == Ranks::one_per_process)
    refusals.add(make_refusal(ErrorCode::kConflict, {"--threads"}, "--threads: {} needs a process for each rank",
                              request.choice.name)
                     .with_hint("leave --threads out"));
  if (answer.refusals.empty() && request.processes == true && answer.traits.ranks == Ranks::same_process)
    refusals.add(make_refusal(ErrorCode::kConflict, {"--processes"},
                              "--processes: {} joins ranks that are threads of one process", request.choice.name)
                     .with_hint("leave --processes out"));
  refusals.add(answer.refusals);
  if (!refusals.empty()) return {};
  conformance::CommunicatorSubject subject;
  subject.name = request.choice.name;
  subject.traits = answer.traits;
  subject.max_group = request.ranks;
  subject.allocations = conformance::allocations;
  subject.setup.options = request.choice.options;
  subject.setup.timeout_s = request.timeout_s;
  subject.setup.processes = request.processes.value_or(answer.traits.ranks == Ranks::one_per_process);
  subject.setup.backend = [choice = request.choice](const PluginContext& context) {
    return create_for_suite<CommBackend>(*choice.library, context, choice.folders);
  };
  return {
      text("{}, up to {} ranks as {}", subject.name, request.ranks, subject.setup.processes ? "processes" : "threads"),
      conformance::communicator_checks(subject)};
}

constexpr KindOfSuite kKinds[] = {
    {CommBackend::kKind, communicator_suite},
    {Scheduler::kKind, scheduler_suite},
    {Model::kKind, model_suite, small_model_settings},
    {Optimizer::kKind, optimizer_suite},
    {KernelSet::kKind, kernel_suite},
};

} // namespace

std::span<const KindOfSuite> kinds_of_suites() {
  return kKinds;
}

} // namespace triax::app
