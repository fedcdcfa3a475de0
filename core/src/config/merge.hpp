// SPDX-License-Identifier: Apache-2.0
// Merges layers (included files, the main file, flags): the value of each key, and where it was written.
//
// Blocking: reads files. Errors: added to `refusals`.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/document.hpp"
#include "config/load.hpp"

namespace triax::config {

/// A key, as written in the last layer that has it.
struct Setting {
  Entry entry;
  std::filesystem::path base; // relative paths start here
  bool flag = false;          // the value is the text of a flag, to be parsed by the type of its key
};

struct Layers {
  std::string shown;                                              // the main file, as the user named it
  int main = 0;                                                   // its layer
  std::map<std::string, std::map<std::string, Setting>> settings; // by table and key
  std::map<std::string, Position> tables;                         // where each table was first written
  std::vector<std::string> dropped;                               // see LoadResult::dropped

  std::set<std::string> replaced; // see RunConfig::replaced

  const Setting* find(const std::string& table, const std::string& key) const;
};

/// If a file cannot be read or parsed, adds an error to `refusals`; the result is then incomplete.
Layers read_layers(const std::filesystem::path& file, const std::vector<Override>& overrides, Diagnostics& refusals);
/// The same of a text that is not in a file.
Layers read_layers(const TomlText& toml, const std::vector<Override>& overrides, Diagnostics& refusals);

} // namespace triax::config
