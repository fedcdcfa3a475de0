// SPDX-License-Identifier: Apache-2.0
#include "key_table.hpp"

#include <sstream>

#include "config/core_keys.hpp"
#include "config/plugin_tables.hpp"
#include "triax/abi.h"

namespace triax::reference {

namespace {

Completion completion_of(const triax_option& option) {
  Completion out;
  if (option.type == TRIAX_OPTION_PATH) out.source = Completion::Source::file;
  if (option.type == TRIAX_OPTION_BOOL) out.words = {"true", "false"};
  std::istringstream choices(option.choices ? option.choices : "");
  for (std::string choice; std::getline(choices, choice, '|');) out.words.push_back(choice);
  return out;
}

} // namespace

std::vector<Key> read_keys() {
  std::vector<Key> out;
  for (const config::CoreTable& table : config::core_tables()) {
    const std::string prefix = std::string(table.name) + ".";
    if (table.kind) {
      const std::string names(config::plugin_prefix(table.kind));
      out.push_back({prefix + "plugin", "name of the plugin", {Completion::Source::plugin, names, {}}});
    }
    for (const config::CoreKey& key : table.keys)
      out.push_back({prefix + key.option.name, key.option.doc, completion_of(key.option)});
  }
  return out;
}

} // namespace triax::reference
