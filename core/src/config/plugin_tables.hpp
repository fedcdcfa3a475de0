// SPDX-License-Identifier: Apache-2.0
// Finding the plugin that a table names, with the refusals of everything that can be wrong with the name.
//
// Threads: one. Ownership: libraries stay loaded for ever. Blocking: reads files; loads libraries, the first time in a
// child process. Errors: refusals.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/core_keys.hpp"
#include "config/layers.hpp"
#include "config/refusals.hpp"
#include "plugin/loader.hpp"
#include "plugin/probe.hpp"

namespace triax::config {

class PluginFinder {
 public:
  PluginFinder(std::vector<plugin::SearchFolder> folders, Refusals& refusals,
               plugin::FirstLoad first_load = plugin::FirstLoad::probed)
      : folders_(std::move(folders)), refusals_(refusals), first_load_(first_load) {}

  /// Loads these plugins in one child process, before find() loads them here. find() does it for any that is left out.
  void probe(const std::vector<std::string>& names);
  /// Null, and a refusal, if `name`, written at `at`, is no plugin of the table's kind.
  const plugin::Library* find(const CoreTable& table, const std::string& name, const Position& at);
  /// Files of a plugin's name that are not used, because its own stands in an earlier folder.
  std::vector<std::filesystem::path> shadowed(const plugin::Library& library) const;
  /// Empty if find() would find it, or if it is not a plugin of this kind that belongs to the engine; else why it
  /// cannot be used on this machine: it was left out of the build, or a library that it needs is missing.
  std::string why_absent(const CoreTable& table, const std::string& name);
  /// "installed schedulers: sched-gpipe, ..."; by the prefixes of file names, nothing is loaded for it.
  std::string installed(std::string_view kind) const;

 private:
  std::set<std::string> names(std::string_view kind) const;
  void probe_files(const std::vector<std::filesystem::path>& files);
  const plugin::Library& load(const std::filesystem::path& file);

  std::vector<plugin::SearchFolder> folders_;
  Refusals& refusals_;
  const plugin::FirstLoad first_load_;
  std::set<std::filesystem::path> probed_;
  std::map<std::filesystem::path, plugin::ProbeFailure> failures_;                // of those
  std::map<const plugin::Library*, std::vector<std::filesystem::path>> shadowed_; // of those found
};

} // namespace triax::config
