// SPDX-License-Identifier: Apache-2.0
#include "train/plugin_states.hpp"

#include "base/printable.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr std::size_t kMaxState = std::size_t{64} << 10;
constexpr const char* kModel = "model";

} // namespace

const config::PluginChoice& plugin_used_as(const config::RunConfig& run, const std::string& use) {
  if (use == kModel) return run.model;
  return use == "kernels" ? run.kernels : run.optimizer;
}

PluginStates::PluginStates(const config::RunConfig& run, const RankPlugins& plugins)
    : run_(run),
      of_({{kModel, find_extension<SavedState>(plugins.model())},
           {"kernels", find_extension<SavedState>(plugins.kernels())},
           {"optimizer", find_extension<SavedState>(plugins.optimizer())}}) {}

std::map<std::string, std::string> PluginStates::save() const {
  std::map<std::string, std::string> out;
  for (const auto& [use, state] : of_) {
    if (!state) continue;
    const std::string& plugin = plugin_used_as(run_, use).name;
    std::string& text_of = out[use] = call_plugin("save", plugin.c_str(), [&state = state] { return state->save(); });
    if (text_of.size() > kMaxState || !is_utf8(text_of))
      throw Error(text("save() of plugin \"{}\" returned {}", plugin,
                       text_of.size() > kMaxState ? text("{} bytes", text_of.size()) : "invalid UTF-8"),
                  {}, "this is a defect of the plugin: a state is a text of at most 64 KiB");
  }
  return out;
}

void PluginStates::load(const std::map<std::string, std::string>& states) const {
  for (const auto& [use, saved] : states) {
    const auto found = of_.find(use);
    if (found == of_.end() || !found->second) continue;
    call_plugin("load", plugin_used_as(run_, use).name.c_str(), [&, &saved = saved] { found->second->load(saved); });
  }
}

Refusals PluginStates::check(const checkpoint::Manifest& manifest, bool weights_only) const {
  Refusals out;
  for (const auto& [use, state] : of_) {
    if (weights_only && use != kModel) continue;
    const bool is_saved = manifest.training.plugins.contains(use);
    if (is_saved == (state != nullptr)) continue;
    const config::PluginChoice& choice = plugin_used_as(run_, use);
    const auto writer = manifest.plugins.find(use);
    const std::string before = writer == manifest.plugins.end() ? "another plugin" : writer->second;
    out.add(make_refusal(ErrorCode::kIncompatible, {use + ".plugin"},
                         is_saved ? "the checkpoint has a state of {} that {} does not read"
                                  : "the checkpoint, of {}, has no state that {} can continue from",
                         before, choice.name)
                .with_hint("use the plugin that the checkpoint was written with{}",
                           use == kModel ? ""
                                         : ", or begin with its weights alone: checkpoint.from and "
                                           "checkpoint.load = \"weights\""));
  }
  return out;
}

} // namespace triax::train
