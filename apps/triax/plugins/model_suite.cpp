// SPDX-License-Identifier: Apache-2.0
#include "plugins/model_suite.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plugin/probe_answer.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_plugins.hpp"
#include "plugins/suite_probe.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/model_checks.hpp"

namespace triax::app {

namespace {

using conformance::ModelSubject;
using conformance::ModelSupport;

/// Sizes that four tensor ranks divide, also with rotary positions, which turn pairs of a head's columns.
struct SmallOption {
  const char *name, *value;
  bool only_if_required;
  std::uint32_t type = TRIAX_OPTION_INT;
};
constexpr SmallOption kSmallOptions[] = {
    {"layers", "2", true},
    {"hidden", "16", true},
    {"heads", "4", true},
    {"sequence", "8", true},
    {"dropout", "0.25", false, TRIAX_OPTION_FLOAT},
};

nlohmann::json answers_of_model(const ModelSubject& subject, const SuiteRequest& request) {
  Refusals refusals;
  const ModelSupport support = conformance::find_support(subject, refusals, guard_of(request));
  return {{"vocab", support.vocab},         {"types", support.types},
          {"tensor", support.tensor},       {"sequence", support.sequence},
          {"recompute", support.recompute}, {"generate", support.generate},
          {"pipeline", support.pipeline},   {"refusals", plugin::refusals_json(refusals)}};
}

ModelSupport support_in(const nlohmann::json& json) {
  ModelSupport out;
  out.vocab = json.at("vocab");
  for (const nlohmann::json& type : json.at("types")) out.types.push_back(static_cast<DType>(type.get<int>()));
  json.at("tensor").get_to(out.tensor);
  json.at("sequence").get_to(out.sequence);
  out.recompute = json.at("recompute");
  out.generate = json.at("generate");
  out.pipeline = json.at("pipeline");
  return out;
}

ModelSupport ask_model(const ModelSubject& subject, const SuiteRequest& request, Refusals& refusals) {
  const auto json = ask_in_child(
      request, [&] { return answers_of_model(subject, request); }, refusals);
  if (!json) return {};
  add_refusals_of(request, plugin::read_refusals(json->at("refusals")), refusals);
  return support_in(*json);
}

bool has_dropout_rate(const plugin::Library& library, const Options& options) {
  const triax_option* const option = plugin::find_option(library, "dropout");
  return option && option->type == TRIAX_OPTION_FLOAT && options.number(option->name) > 0;
}

std::string options_text(const SuiteRequest& request) {
  std::string out;
  for (const auto& [key, value] : request.set) out += text("{}{} = {}", out.empty() ? " (" : ", ", key, value);
  return out.empty() ? out : out + ")";
}

} // namespace

std::vector<config::Override> small_model_settings(const plugin::Library& library,
                                                   const std::vector<config::Override>& given) {
  std::vector<config::Override> out;
  for (const SmallOption& small : kSmallOptions) {
    const triax_option* const option = plugin::find_option(library, small.name);
    if (!option || option->type != small.type || (small.only_if_required && option->default_value)) continue;
    const std::string key = text("model.{}", small.name);
    if (std::ranges::find(given, key, &config::Override::key) == given.end()) out.push_back({key, small.value});
  }
  return out;
}

RequestedSuite model_suite(const SuiteRequest& request, Refusals& refusals) {
  ModelSubject subject;
  subject.name = request.choice.name;
  subject.options = request.choice.options;
  subject.has_dropout = has_dropout_rate(*request.choice.library, request.choice.options);
  subject.model = [library = request.choice.library](const PluginContext& context) {
    return create_for_suite<Model>(*library, context);
  };
  subject.kernels = kernels_of_flag(request.kernels, request.folders, refusals);
  if (!refusals.empty()) return {};
  subject.ranks.backend = backend_of_suite("comm-local", request.folders);
  subject.ranks.timeout_s = request.timeout_s;
  subject.allocations = conformance::allocations;
  subject.support = ask_model(subject, request, refusals);
  if (!refusals.empty()) return {};
  return {text("{}{} with {}", subject.name, options_text(request), request.kernels),
          conformance::model_checks(subject)};
}

} // namespace triax::app
