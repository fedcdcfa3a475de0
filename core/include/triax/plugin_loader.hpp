// SPDX-License-Identifier: Apache-2.0
// Creates objects of other plugins, for a plugin that wraps one: plugins/comm-faulty wraps a communicator.
//
//   MyBackend(const triax::PluginContext& context)
//       : inner_(triax::create_plugin<triax::CommBackend>(context.loader, "comm-ucx", settings)) {}
//
// Threads: the thread that runs the constructor. Ownership: the core's; valid until the constructor has returned. The
// objects that it creates share what they need. Blocking: loads a library. Errors: Error.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "triax/error.hpp"
#include "triax/export.hpp"

namespace triax {

/// Creates objects of other plugins.
class TRIAX_API PluginLoader {
 public:
  /// Creates an object of the plugin `name`, of `kind`, for the rank of the object that is being constructed. The
  /// plugin is searched for as those of the run are; a name with a slash is the path of its file. `settings` are
  /// options of the plugin as "KEY=VALUE", with the value as in TOML; strings need no quotes, and relative paths begin
  /// at the working folder. Other options have their defaults. The pointer is that of the kind's interface. Throws
  /// Error with the plugin if it is not found, does not load, does not have the option, or fails in its constructor.
  virtual std::shared_ptr<void> create(std::string_view kind, std::string_view name,
                                       std::span<const std::string> settings) = 0;

 protected:
  ~PluginLoader() = default;
};

/// The object as its interface, such as CommBackend.
template <class Interface>
std::shared_ptr<Interface> create_plugin(PluginLoader* loader, std::string_view name,
                                         std::span<const std::string> settings) {
  if (!loader)
    throw Error("this triax cannot create a plugin inside another: its plugin ABI is older than 1.1", {},
                "use a newer triax");
  return std::static_pointer_cast<Interface>(loader->create(Interface::kKind, name, settings));
}

} // namespace triax
