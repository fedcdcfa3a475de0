// SPDX-License-Identifier: Apache-2.0
#include "plugins/model_suite.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "plugins/suite_object.hpp"
#include "plugins/suite_plugins.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/model.hpp"

namespace triax::app {

namespace {

using conformance::ModelSubject;
using conformance::ModelSupport;

/// Sizes that four tensor ranks divide, also with rotary positions, which turn pairs of a head's columns.
struct SmallOption {
  const char *name, *value;
  bool only_if_required;
};
constexpr SmallOption kSmallOptions[] = {
    {"layers", "2", true},   {"hidden", "16", true},     {"heads", "4", true},
    {"sequence", "8", true}, {"dropout", "0.25", false},
};

std::string answer_of_model(const ModelSubject& subject) {
  Refusals refusals;
  const ModelSupport support = conformance::find_support(subject, refusals);
  return plugin::pack({{"vocab", support.vocab},
                       {"types", support.types},
                       {"tensor", support.tensor},
                       {"sequence", support.sequence},
                       {"recompute", support.recompute},
                       {"generate", support.generate},
                       {"pipeline", support.pipeline},
                       {"refusals", plugin::refusals_json(refusals)}});
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

/// Asks the model in a child process, because it may crash.
ModelSupport ask_model(const ModelSubject& subject, const SuiteRequest& request, Refusals& refusals) {
  const plugin::ProbeResult probe =
      plugin::run_probe([&] { return answer_of_model(subject); }, plugin::ProbeOutput::captured);
  if (probe.failure) {
    refusals.add({ErrorCode::kPluginFailed,
                  {},
                  text("{}: {}", subject.name, probe.failure->reason()),
                  probe.failure->hint(request.choice.library->file)});
    return {};
  }
  const nlohmann::json json = plugin::unpack(probe.output);
  for (Refusal& refusal : plugin::read_refusals(json.at("refusals"))) {
    refusal.message = text("{}: {}", subject.name, refusal.message);
    refusals.add(refusal);
  }
  return support_in(json);
}

bool has_dropout_rate(const plugin::Library& library, const Options& options) {
  return std::ranges::any_of(library.options, [&](const triax_option& option) {
    return std::string_view(option.name) == "dropout" && option.type == TRIAX_OPTION_FLOAT &&
           options.number(option.name) > 0;
  });
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
  for (const SmallOption& small : kSmallOptions)
    for (const triax_option& option : library.options) {
      const std::string key = text("model.{}", option.name);
      const bool is_set = std::ranges::find(given, key, &config::Override::key) != given.end();
      const std::uint32_t type = std::string_view(small.name) == "dropout" ? TRIAX_OPTION_FLOAT : TRIAX_OPTION_INT;
      if (std::string_view(option.name) == small.name && option.type == type && !is_set &&
          !(small.only_if_required && option.default_value))
        out.push_back({key, small.value});
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
  try {
    subject.kernels = kernels_of_suite(request.kernels, request.folders);
  } catch (const Error& error) {
    const std::string where = error.where().empty() ? "" : error.where() + ": ";
    refusals.add({ErrorCode::kUnknownPlugin,
                  {"--kernels"},
                  text("--kernels {}: {}{}", request.kernels, where, error.message()),
                  error.hint()});
    return {};
  }
  subject.ranks.backend = backend_of_suite("comm-local", request.folders);
  subject.ranks.timeout_s = request.timeout_s;
  subject.allocations = conformance::allocations;
  subject.support = ask_model(subject, request, refusals);
  if (!refusals.empty()) return {};
  return {text("{}{} with {}", subject.name, options_text(request), request.kernels),
          conformance::model_checks(subject)};
}

} // namespace triax::app
