// SPDX-License-Identifier: Apache-2.0
// Finds and loads plugins, and creates their objects.
//
// Threads: load(): any. Ownership: libraries stay loaded until the process ends, and their registry is leaked on
// purpose, because objects, threads and exit hooks of a library must not outlive its code. Blocking: load() reads
// files. Errors: Error with a specific message for each step. There is no fallback.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/abi.h"
#include "triax/plugin.hpp"

namespace triax::plugin {

/// A library that passed all checks of the plugin ABI.
struct Library {
  std::filesystem::path file;
  const triax_plugin* descriptor = nullptr;
  std::vector<triax_option> options; // copied with the plugin's stride
};

/// A search folder and its origin: "plugins.path, run.toml:2", "TRIAX_PLUGIN_PATH", or "" for the built-in folder.
struct SearchFolder {
  std::filesystem::path folder;
  std::string origin;
};

/// plugins.path of the TOML file, then TRIAX_PLUGIN_PATH, then triax/plugins beside libtriax_core.
std::vector<SearchFolder> search_folders(const std::vector<SearchFolder>& from_config);

/// yes, or the entry of TRIAX_PLUGIN_PATH that is not a folder.
Refusals check_environment();

/// The .so files of a folder, sorted by name; empty if the folder cannot be read.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// The folder of libtriax_core.so.
std::filesystem::path core_folder();

/// Whether two paths lead to the same file, through another folder or a symlink.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// The file of a plugin, and the files with the same name in later folders, which are not used.
struct Found {
  std::filesystem::path file;
  std::vector<std::filesystem::path> shadowed;
};

/// The entry `name` in the first folder that has one, even a dangling symlink, which load() then rejects. Throws Error
/// with the searched folders and similar names. Its message begins with `plugin "name"`, so that a caller can prepend
/// the table: `schedule.plugin "...`.
Found find(std::string_view name, const std::vector<SearchFolder>& folders);

/// Loads `file` and keeps it loaded; a second call returns the same result. `kind` may be empty (any).
const Library& load(const std::filesystem::path& file, std::string_view kind);

/// Whether load() has passed `file` to the dynamic linker, so that its initializers have run in this process.
bool is_loaded(const std::filesystem::path& file);

/// A plugin's object; its deleter is the plugin's `destroy`.
template <class Interface>
using Instance = std::unique_ptr<Interface, void (*)(void*)>;

void* create_object(const Library& library, const PluginContext& context);

/// Creates the library's object. Throws Error with the plugin's message. The context must outlive the object.
template <class Interface>
Instance<Interface> create(const Library& library, const PluginContext& context) {
  return {static_cast<Interface*>(create_object(library, context)), library.descriptor->destroy};
}

} // namespace triax::plugin
