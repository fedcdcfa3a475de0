// SPDX-License-Identifier: Apache-2.0
// Finds the plugin that a table names, and reports what is wrong with the name.
//
// Ownership: libraries are never unloaded. Blocking: reads files; loads libraries, the first time in a child process.
// Errors: added to `refusals`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/core_keys.hpp"
#include "config/diagnostics.hpp"
#include "config/merge.hpp"
#include "plugin/loader.hpp"
#include "plugin/probe.hpp"

namespace triax::config {

/// The prefix of the names of plugins of a kind: "sched-" for "scheduler".
std::string_view plugin_prefix(std::string_view kind);

/// Whether a plugin of this name is part of Triax. Also true for those that were left out of this build.
bool is_engine_plugin(const std::string& name);

class PluginFinder {
 public:
  PluginFinder(std::vector<plugin::SearchFolder> folders, Diagnostics& refusals,
               plugin::FirstLoad first_load = plugin::FirstLoad::probed,
               plugin::FolderChoice choice = plugin::FolderChoice::key)
      : folders_(std::move(folders)), refusals_(refusals), first_load_(first_load), choice_(choice) {}

  /// Loads these plugins in one child process, before find() loads them here. find() probes any plugin that was left
  /// out.
  void probe(const std::vector<std::string>& names);
  /// If `name`, written at `at`, is not a plugin of the table's kind: adds an error to `refusals` and returns null.
  const plugin::Library* find(const CoreTable& table, const std::string& name, const Position& at);
  /// The same for a plugin of this kind that `key` names.
  const plugin::Library* find(std::string_view kind, const std::string& key, const std::string& name,
                              const Position& at);
  /// Files with the plugin's name in later folders of the search path, which are not used.
  std::vector<std::filesystem::path> shadowed(const plugin::Library& library) const;
  const std::vector<plugin::SearchFolder>& folders() const noexcept { return folders_; }
  /// Why this plugin of the engine cannot be used on this machine: it was left out of the build, or a library that it
  /// needs is missing. Empty if find() finds it, if it crashes, or if it is not an engine plugin of this kind.
  std::string why_absent(const CoreTable& table, const std::string& name);
  /// "installed schedulers: sched-gpipe, ..."; uses the prefixes of file names, loads nothing.
  std::string installed(std::string_view kind) const;

 private:
  std::set<std::string> names(std::string_view kind) const;
  void probe_files(const std::vector<std::filesystem::path>& files);
  const plugin::Library& load(const std::filesystem::path& file);

  std::vector<plugin::SearchFolder> folders_;
  Diagnostics& refusals_;
  const plugin::FirstLoad first_load_;
  const plugin::FolderChoice choice_;
  std::set<std::filesystem::path> probed_;
  std::map<std::filesystem::path, plugin::ProbeFailure> failures_; // of probed files
  /// The files that a found plugin hides, because they have its name.
  std::map<const plugin::Library*, std::vector<std::filesystem::path>> shadowed_;
};

} // namespace triax::config
