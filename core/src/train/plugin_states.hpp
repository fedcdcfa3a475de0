// SPDX-License-Identifier: Apache-2.0
// States that plugins save as text in a checkpoint (triax/saved_state.hpp).
//
// Threads: the rank's main thread. Ownership: borrows the plugins. Blocking: never. Errors: Error with the plugin.
#pragma once

#include <map>
#include <string>

#include "checkpoint/manifest.hpp"
#include "train/plugins.hpp"
#include "triax/saved_state.hpp"

namespace triax::train {

/// `use`: "model", "kernels" or "optimizer".
const config::PluginChoice& plugin_used_as(const config::RunConfig& run, const std::string& use);

class PluginStates {
 public:
  PluginStates(const config::RunConfig& run, const RankPlugins& plugins);

  std::map<std::string, std::string> save() const;
  /// Those of the plugins that are used here; others are not read. See check().
  void load(const std::map<std::string, std::string>& states) const;
  /// Why the run cannot continue with these states of a checkpoint: a plugin of this run needs one that is not there,
  /// or does not read one that is. `weights_only`: only the model's counts.
  Refusals check(const checkpoint::Manifest& manifest, bool weights_only) const;

 private:
  const config::RunConfig& run_;
  std::map<std::string, SavedState*> of_; // by "model", "kernels", "optimizer"; null: the plugin has no state
};

} // namespace triax::train
