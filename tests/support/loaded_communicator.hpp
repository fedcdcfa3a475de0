// SPDX-License-Identifier: Apache-2.0
// Backends of a loaded communicator plugin, as conformance checks and ranks need them.
//
// Threads: load it on one thread; the returned function may be called on any. Errors: those of the loader.
#pragma once

#include <filesystem>
#include <string>

#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"
#include "support/installation.hpp"
#include "triax/communicator.hpp"
#include "triax/conformance/rank.hpp"

namespace triax::test {

/// Sets the options of the library that are not set yet to their defaults.
inline void set_defaults(const plugin::Library& library, Options& options) {
  for (const triax_option& option : library.options)
    if (!options.has(option.name) && option.default_value)
      options.set(option.name, plugin::parse_option(option, option.default_value));
}

inline conformance::Object<CommBackend> create_communicator(const plugin::Library& library,
                                                            const PluginContext& context) {
  plugin::Instance<CommBackend> made = plugin::create<CommBackend>(library, context);
  const auto destroy = made.get_deleter();
  return {made.release(), [destroy](CommBackend* backend) { destroy(backend); }};
}

/// `plugin`: a name, or an absolute path. Options that are not set get their defaults.
inline std::function<conformance::Object<CommBackend>(const PluginContext&)> loaded_communicator(
    const std::string& plugin, Options& options) {
  const std::filesystem::path file = plugin;
  const plugin::Library& library = plugin::load(file.is_absolute() ? file : plugin_file(plugin), CommBackend::kKind);
  set_defaults(library, options);
  return [&library](const PluginContext& context) { return create_communicator(library, context); };
}

} // namespace triax::test
