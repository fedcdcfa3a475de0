// SPDX-License-Identifier: Apache-2.0
#include "plugins/suite_probe.hpp"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/caught_error.hpp"
#include "plugin/plugin_call.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "plugins/suite_object.hpp"
#include "triax/conformance/clause.hpp"

namespace triax::app {

namespace {

using conformance::ProbedCall;

/// "supports() [M1]"; clause_in() finds the clause again.
std::string call_text(const ProbedCall& of) {
  return *of.clause == '\0' ? text("{}()", of.function) : text("{}() [{}]", of.function, of.clause);
}

std::string clause_in(const std::string& call) {
  const std::size_t begin = call.rfind('[');
  return begin == std::string::npos || !call.ends_with(']') ? "" : call.substr(begin + 1, call.size() - begin - 2);
}

/// Begins a hint; empty without a clause.
std::string contract_hint(const std::string& call) {
  const std::string id = clause_in(call);
  if (id.empty()) return {};
  const conformance::Clause& clause = conformance::find_clause(id);
  return text("[{}] is in {}, line {}; ", id, clause.header, clause.line);
}

Refusal refusal_of(const SuiteRequest& request, const plugin::ProbeFailure& failure) {
  const bool is_other = !failure.plugin.empty() && failure.plugin != request.choice.name;
  std::filesystem::path file = is_other ? failure.file : request.choice.library->file;
  if (!clause_in(failure.call).empty()) file.clear(); // the command to debug it is for constructors
  return {ErrorCode::kPluginFailed,
          {},
          text("{}: {}", is_other ? failure.plugin : request.choice.name, failure.reason()),
          contract_hint(failure.call) + failure.hint(file)};
}

/// As a check has.
plugin::CallLimits limits_of(const SuiteRequest& request) {
  plugin::CallLimits out;
  out.call = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * kCheckWaits * request.timeout_s));
  return out;
}

} // namespace

std::optional<nlohmann::json> ask_in_child(const SuiteRequest& request, const std::function<nlohmann::json()>& ask,
                                           Refusals& refusals) {
  const plugin::ProbeResult probe =
      plugin::run_probe([&] { return plugin::pack(ask()); }, plugin::ProbeOutput::captured, limits_of(request));
  if (!probe.failure) return plugin::unpack(probe.output);
  refusals.add(refusal_of(request, *probe.failure));
  return std::nullopt;
}

conformance::CallGuard guard_of(const SuiteRequest& request) {
  return [&request](const ProbedCall& of, const std::function<void()>& call) {
    const bool is_under_test = of.kind == request.choice.library->descriptor->kind;
    const std::string& plugin = is_under_test ? request.choice.name : request.kernels;
    const std::string what = call_text(of);
    const plugin::CallScope scope(plugin, what);
    try {
      call();
    } catch (...) {
      throw Error(text("{} throws: {}", what, caught_error().what()), plugin,
                  text("{}report it to the plugin's author", contract_hint(what)));
    }
  };
}

void add_refusals_of(const SuiteRequest& request, const Refusals& of_plugin, Refusals& refusals) {
  for (Refusal refusal : of_plugin) {
    refusal.message = text("{}: {}", request.choice.name, refusal.message);
    refusals.add(refusal);
  }
}

} // namespace triax::app
