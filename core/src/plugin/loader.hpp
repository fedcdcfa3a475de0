// SPDX-License-Identifier: Apache-2.0
// Finding, loading and making plugins.
//
// Threads: load() may be called from any thread. Ownership: loaded libraries stay loaded until the process ends; the
// registry of them is leaked on purpose (an object, a thread or an exit hook of a library must never outlive its code).
// Blocking: load() reads files. Errors: Error with one sentence for each step that can fail; nothing falls back.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/abi.h"
#include "triax/plugin.hpp"

namespace triax::plugin {

/// A library that passed every check of the door.
struct Library {
  std::filesystem::path file;
  const triax_plugin* descriptor = nullptr;
  std::vector<triax_option> options; // copied out by the plugin's own stride
};

/// A folder to look in, and who asked for it: "plugins.path, run.toml:2", "TRIAX_PLUGIN_PATH", "" for the built-in one.
struct SearchFolder {
  std::filesystem::path folder;
  std::string origin;
};

/// plugins.path of the TOML, then TRIAX_PLUGIN_PATH, then triax/plugins beside libtriax_core.
std::vector<SearchFolder> search_folders(const std::vector<SearchFolder>& from_config);

/// yes, or which folder of TRIAX_PLUGIN_PATH is none.
Support check_environment();

/// The .so files of a folder by name; none for a folder that cannot be read.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// The folder of libtriax_core.so.
std::filesystem::path core_folder();

/// Whether two paths lead to one file, through another folder or a symlink.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// The file of a plugin, and the files of the same name in later folders, which are not used.
struct Found {
  std::filesystem::path file;
  std::vector<std::filesystem::path> shadowed;
};

/// The entry of `name` in the first folder that has one: a dangling symlink too, which load() refuses. Throws Error
/// saying what was looked for, where, and what is near; its message begins with `plugin "name"`, so that a caller can
/// put the table in front: `schedule.plugin "...`.
Found find(std::string_view name, const std::vector<SearchFolder>& folders);

/// Loads `file` for ever; a second call returns the first's result. `kind` may be empty (any).
const Library& load(const std::filesystem::path& file, std::string_view kind);

/// Whether load() has handed `file` to the dynamic linker before, so that its initializers have run in this process.
bool is_loaded(const std::filesystem::path& file);

/// A plugin's object, destroyed by the plugin.
template <class Interface>
using Instance = std::unique_ptr<Interface, void (*)(void*)>;

void* create_object(const Library& library, const PluginContext& context);

/// Makes the library's object. Throws Error with the plugin's own words. The context must outlive the object.
template <class Interface>
Instance<Interface> create(const Library& library, const PluginContext& context) {
  return {static_cast<Interface*>(create_object(library, context)), library.descriptor->destroy};
}

} // namespace triax::plugin
