// Finding the plugin that a table names, with the refusals of everything that can be wrong with the name.
//
// Threads: one. Ownership: libraries stay loaded for ever. Blocking: reads files. Errors: refusals.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/core_keys.hpp"
#include "config/layers.hpp"
#include "config/refusals.hpp"
#include "plugin/loader.hpp"

namespace triax::config {

class PluginFinder {
 public:
  PluginFinder(std::vector<plugin::SearchFolder> folders, Refusals& refusals)
      : folders_(std::move(folders)), refusals_(refusals) {}

  /// Null, and a refusal, if `name`, written at `at`, is no plugin of the table's kind.
  const plugin::Library* find(const CoreTable& table, const std::string& name, const Position& at);
  /// "installed schedulers: sched-gpipe, ..."; by the prefixes of file names, nothing is loaded for it.
  std::string installed(std::string_view kind) const;

 private:
  std::set<std::string> names(std::string_view kind) const;

  std::vector<plugin::SearchFolder> folders_;
  Refusals& refusals_;
};

} // namespace triax::config
