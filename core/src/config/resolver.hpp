// SPDX-License-Identifier: Apache-2.0
// Checks every table against the declarations of its keys (the core's and the plugin's) and assigns a value to each
// key.
//
// Blocking: loads the named plugins. Errors: added to `refusals`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/core_keys.hpp"
#include "config/diagnostics.hpp"
#include "config/merge.hpp"
#include "config/plugin_tables.hpp"
#include "config/run_config.hpp"
#include "config/values.hpp"

namespace triax::config {

struct Resolved {
  Values values;
  std::map<std::string, PluginChoice> plugins; // by table; those that inherit only if written
  std::vector<std::string> unchecked;          // see LoadResult::unchecked
};

class Resolver {
 public:
  Resolver(const Layers& layers, Diagnostics& refusals, Purpose purpose = Purpose::train,
           plugin::FirstLoad first_load = plugin::FirstLoad::probed)
      : layers_(layers), refusals_(refusals), purpose_(purpose), first_load_(first_load) {}
  Resolved resolve();

 private:
  /// One row of a table: a core key, or an option of its plugin.
  struct Row {
    const triax_option* option;
    bool derived = false;       // derive() sets its value
    bool per_stage = false;     // CoreKey::per_stage
    const char* word = nullptr; // see CoreKey::word
  };

  void resolve_table(const CoreTable& table, PluginFinder& finder);
  /// memory.offload_kernels, where it is used.
  void resolve_host_kernels(PluginFinder& finder);
  void resolve_row(const CoreTable& table, const Row& row, Options* options, std::vector<const Row*>& missing);
  const plugin::Library* plugin_of(const CoreTable& table, PluginFinder& finder);
  /// Whether the run can be loaded without the plugin of this table if it is not installed.
  bool may_be_absent(const CoreTable& table) const;
  void leave_out(const CoreTable& table, const std::string& name, const std::string& reason);
  void refuse_missing(const CoreTable& table, const std::vector<const Row*>& missing);
  void refuse_unknown_keys(const CoreTable& table, const std::vector<Row>& rows, const plugin::Library* library);
  void refuse_unknown_tables();
  void refuse_bare_key(const std::string& key, const Setting& setting);
  void refuse_table_as_key(const CoreTable& table, const Setting& setting);
  /// Position of the table, or the file if the table is not written.
  Position table_at(const CoreTable& table) const;
  std::vector<plugin::SearchFolder> plugin_folders();
  std::vector<std::string> plugin_names() const;

  const Layers& layers_;
  Diagnostics& refusals_;
  const Purpose purpose_;
  const plugin::FirstLoad first_load_;
  Resolved out_;
};

} // namespace triax::config
