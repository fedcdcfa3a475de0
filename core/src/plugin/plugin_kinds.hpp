// SPDX-License-Identifier: Apache-2.0
// The kinds of plugin, one row each: what loader, configuration and reports need to know of a kind. CONTRIBUTING.md
// lists what else a new kind touches.
//
// Threads: any. Ownership: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "triax/error.hpp"

namespace triax::plugin {

struct PluginKind {
  std::string_view name;                       // "communicator", as in the descriptor
  std::uint32_t version;                       // of its C++ interface
  std::uint32_t oldest_version;                // plugins that were built for an older one are refused (docs/adr/0002)
  std::string_view table;                      // of the TOML file that names its plugin: "comm"; a flag names planners
  std::string_view prefix;                     // of the names of plugins: "comm-"
  std::string_view article_name;               // "a communicator"
  std::string_view plural;                     // "communicators"
  std::span<const std::string_view> core_keys; // keys of the core in `table`, which no option may be named like
};

std::span<const PluginKind> plugin_kinds();

/// Null for an unknown kind.
const PluginKind* find_plugin_kind(std::string_view name);

/// "communicator, scheduler, kernels, model, optimizer, planner"
std::string plugin_kind_names();

/// Empty, or why a plugin that was built for `version` of the interface cannot be used.
Refusals check_interface_version(const PluginKind& kind, std::uint32_t version);

} // namespace triax::plugin
