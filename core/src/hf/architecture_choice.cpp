// SPDX-License-Identifier: Apache-2.0
#include "hf/architecture_choice.hpp"

#include <utility>

#include "base/printable.hpp"
#include "hf/hints.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// The architecture that the file names: "the architecture X".
std::string wanted_text(const ModelConfig& config) {
  if (!config.architectures.empty())
    return text("the architecture {}", shortened(printable(config.architectures.front())));
  return text("an architecture with model_type \"{}\"", shortened(printable(config.model_type)));
}

void refuse_unclear_config(const ModelConfig& config) {
  if (config.architectures.empty() && config.model_type.empty())
    throw Error("has neither architectures nor model_type", config.file.string(), kOtherModel);
  if (config.architectures.size() > 1)
    throw Error(text("architectures has several names: {}", shortened(printable(listed(config.architectures)))),
                config.file.string(), "keep the one whose weights the folder has");
}

bool is_of(const HfArchitecture& architecture, const ModelConfig& config) {
  if (config.architectures.empty()) return architecture.model_type == config.model_type;
  return architecture.name == config.architectures.front();
}

/// The plugin that the user named does not have the architecture.
[[noreturn]] void refuse_plugin(const ModelConfig& config, const MappedPlugin& plugin) {
  std::vector<std::string> known;
  known.reserve(plugin.architectures.size());
  for (const HfArchitecture& each : plugin.architectures) known.push_back(each.name);
  throw Error(text("{} does not have {}", plugin.name, wanted_text(config)), config.file.string(),
              text("it has {}; leave out --model to search all model plugins", listed(known)));
}

[[noreturn]] void refuse_unknown(const ModelConfig& config, const std::vector<MappedPlugin>& candidates,
                                 const std::vector<std::string>& notes) {
  std::vector<std::string> known;
  for (const MappedPlugin& candidate : candidates)
    for (const HfArchitecture& each : candidate.architectures)
      known.push_back(text("{} ({})", each.name, candidate.name));
  std::string hint = text("known: {}", known.empty() ? "none" : listed(known));
  for (const std::string& note : notes) hint += "\n  cannot be used: " + note;
  throw Error(text("no model plugin has {}", wanted_text(config)), config.file.string(), hint);
}

[[noreturn]] void refuse_several(const ModelConfig& config, const std::vector<ArchitectureChoice>& fitting) {
  std::vector<std::string> plugins, architectures;
  for (const ArchitectureChoice& each : fitting) {
    if (plugins.empty() || plugins.back() != each.plugin.name) plugins.push_back(each.plugin.name);
    architectures.push_back(each.plugin.architectures[each.index].name);
  }
  if (plugins.size() > 1)
    throw Error(text("several model plugins have {}: {}", wanted_text(config), listed(plugins)), config.file.string(),
                "choose one with --model");
  throw Error(text("{} has several architectures with model_type \"{}\": {}", plugins.front(),
                   shortened(printable(config.model_type)), listed(architectures)),
              config.file.string(), "set architectures to a list with one of them");
}

} // namespace

ArchitectureChoice choose_architecture(const ModelConfig& config, const std::string& model,
                                       const std::vector<std::filesystem::path>& paths) {
  refuse_unclear_config(config);
  const std::vector<plugin::SearchFolder> folders = search_folders_after(paths);
  std::vector<std::string> notes;
  std::vector<MappedPlugin> candidates;
  if (model.empty()) {
    candidates = mapped_plugins(folders, notes);
  } else {
    candidates.push_back(mapped_plugin(model, folders));
  }
  std::vector<ArchitectureChoice> fitting;
  for (const MappedPlugin& candidate : candidates)
    for (std::size_t i = 0; i < candidate.architectures.size(); ++i)
      if (is_of(candidate.architectures[i], config)) fitting.push_back({candidate, i});
  if (fitting.empty() && !model.empty()) refuse_plugin(config, candidates.front());
  if (fitting.empty()) refuse_unknown(config, candidates, notes);
  if (fitting.size() > 1) refuse_several(config, fitting);
  return std::move(fitting.front());
}

} // namespace triax::hf
