// SPDX-License-Identifier: Apache-2.0
#include "launch/start_backends.hpp"

#include <set>
#include <string>
#include <utility>

#include "plugin/call_guard.hpp"

namespace triax::launch {

namespace {

/// One choice per table: axes may share a table.
std::vector<const config::PluginChoice*> choices_of(const config::RunConfig& run, const Layout& layout) {
  std::vector<const config::PluginChoice*> out;
  std::set<std::string> seen;
  for (const auto& [axis, choice] : run.comm)
    if (layout.size(axis) > 1 && choice.library && seen.insert(choice.table).second) out.push_back(&choice);
  return out;
}

} // namespace

StartBackends::StartBackends(const config::RunConfig& run, const Layout& layout, Log& log)
    : StartBackends(choices_of(run, layout), layout, log) {}

StartBackends::StartBackends(const std::vector<const config::PluginChoice*>& choices, const Layout& layout, Log& log) {
  for (const config::PluginChoice* choice : choices) {
    Serving of{choice,
               plugin::create<CommBackend>(*choice->library, PluginContext{choice->options, log, layout, 0, 1},
                                           choice->folders),
               nullptr};
    of.start = find_extension<ProcessStart>(*of.backend);
    if (!of.start) continue;
    plugin::guarded_call(choice->name, "serve", [&] { of.start->serve(layout.world_size()); });
    serving_.push_back(std::move(of));
  }
}

std::vector<os::Variable> StartBackends::variables(int rank) const {
  std::vector<os::Variable> out;
  for (const Serving& of : serving_)
    for (auto& [name, value] :
         plugin::guarded_call(of.choice->name, "variables", [&] { return of.start->variables(rank); }))
      out.push_back({name, value});
  return out;
}

} // namespace triax::launch
