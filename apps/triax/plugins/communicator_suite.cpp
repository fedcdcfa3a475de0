// SPDX-License-Identifier: Apache-2.0
#include "plugins/communicator_suite.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "plugin/probe_answer.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_probe.hpp"
#include "triax/communicator.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/communicator.hpp"

namespace triax::app {

namespace {

using Ranks = CommTraits::Ranks;

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
  const CommRequest wanted{DeviceKind::host, {DType::f32}, {std::string(kTensorAxis)}, threads, true};
  const Refusals answer = ask("supports", [&] { return backend->supports(wanted); });
  return {{"order", traits.order},
          {"send", traits.send},
          {"buffered_bytes", traits.buffered_bytes},
          {"post", traits.post},
          {"reduction", traits.reduction},
          {"ranks", traits.ranks},
          {"stream_ordered", traits.stream_ordered},
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

/// What the backend declares. Refused: ranks on the host of this machine.
CommTraits ask_backend(const SuiteRequest& request, Refusals& refusals) {
  const auto json = ask_in_child(
      request, [&] { return answers_of_backend(request); }, refusals);
  if (!json) return {};
  const CommTraits traits = traits_in(*json);
  const Refusals answer = plugin::read_refusals(json->at("refusals"));
  if (answer.empty()) refuse_other_ranks(request, traits.ranks, refusals);
  add_refusals_of(request, answer, refusals);
  return traits;
}

} // namespace

RequestedSuite communicator_suite(const SuiteRequest& request, Refusals& refusals) {
  conformance::CommunicatorSubject subject;
  subject.name = request.choice.name;
  subject.traits = ask_backend(request, refusals);
  if (!refusals.empty()) return {};
  subject.max_group = request.ranks;
  subject.allocations = conformance::allocations;
  subject.setup.options = request.choice.options;
  subject.setup.timeout_s = request.timeout_s;
  subject.setup.processes = request.processes.value_or(subject.traits.ranks == Ranks::one_per_process);
  subject.setup.backend = [choice = request.choice](const PluginContext& context) {
    return create_for_suite<CommBackend>(*choice.library, context, choice.folders);
  };
  return {
      text("{}, up to {} ranks as {}", subject.name, request.ranks, subject.setup.processes ? "processes" : "threads"),
      conformance::communicator_checks(subject)};
}

} // namespace triax::app
