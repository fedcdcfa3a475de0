// SPDX-License-Identifier: Apache-2.0
// The loader that a constructor gets: creates the plugins that it wraps.
//
// Ownership: refers to the log and layout of the outer object, which outlive the objects that it creates.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "triax/plugin_loader.hpp"

namespace triax::plugin {

class InnerPlugins final : public PluginLoader {
 public:
  /// `folders`: as of create_object().
  InnerPlugins(const PluginContext& outer, const std::vector<SearchFolder>& folders)
      : outer_(outer), folders_(folders) {}
  InnerPlugins(const InnerPlugins&) = delete;
  InnerPlugins& operator=(const InnerPlugins&) = delete;
  ~InnerPlugins() = default;

  std::shared_ptr<void> create(std::string_view kind, std::string_view name,
                               std::span<const std::string> settings) override;

 private:
  const PluginContext& outer_;
  const std::vector<SearchFolder>& folders_;
};

/// The options of a library: `settings` ("KEY=VALUE"), and defaults. Throws Error with the plugin for an unknown key,
/// an invalid value, or a required option without a value.
Options read_settings(const Library& library, std::span<const std::string> settings);

} // namespace triax::plugin
