// SPDX-License-Identifier: Apache-2.0
#include "launch/start_backends.hpp"

#include <set>
#include <string>
#include <utility>

#include "plugin/call_guard.hpp"

namespace triax::launch {

StartBackends::StartBackends(const config::RunConfig& run, const Layout& layout, Log& log) {
  std::set<std::string> seen; // axes may share a table
  for (const auto& [axis, choice] : run.comm) {
    if (layout.size(axis) == 1 || !choice.library || !seen.insert(choice.table).second) continue;
    Serving of{&choice, plugin::create<CommBackend>(*choice.library, PluginContext{choice.options, log, layout, 0, 1}),
               nullptr};
    of.start = find_extension<ProcessStart>(*of.backend);
    if (!of.start) continue;
    plugin::guarded_call(choice.name, "serve", [&] { of.start->serve(layout.world()); });
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
