// SPDX-License-Identifier: Apache-2.0
// Includes, the file itself, and flags, laid over one another: which value each key has, and where it was written.
//
// Threads: one. Ownership: values. Blocking: reads files. Errors: refusals.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/loaded.hpp"
#include "config/refusals.hpp"

namespace triax::config {

/// A key as the last layer that has it wrote it.
struct Setting {
  Entry entry;
  std::filesystem::path base; // relative paths begin here
  bool flag = false;          // the value is a flag's text, to be read by the type of its key
};

struct Layers {
  std::string shown;                                              // the main file, as the user named it
  int main = 0;                                                   // its layer
  std::map<std::string, std::map<std::string, Setting>> settings; // by table and key
  std::map<std::string, Position> tables;                         // where each table was first written
  std::vector<std::string> dropped;                               // see Loaded::dropped

  const Setting* find(const std::string& table, const std::string& key) const;
};

/// Files that cannot be read or parsed are refused; the rest is then worth nothing.
Layers read_layers(const std::filesystem::path& file, const std::vector<Override>& overrides, Refusals& refusals);

} // namespace triax::config
