// SPDX-License-Identifier: Apache-2.0
// Finds and loads plugins, and creates their objects.
//
// Threads: load(): any. Ownership: libraries stay loaded until the process ends, and their registry is leaked on
// purpose, because objects, threads and exit hooks of a library must not outlive its code. Blocking: load() reads
// files. Errors: Error with a specific message for each step. There is no fallback.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/elf_note.hpp"
#include "triax/abi.h"
#include "triax/plugin.hpp"

namespace triax::plugin {

/// A library that passed all checks of the plugin ABI.
struct Library {
  std::filesystem::path file;
  const triax_plugin* descriptor = nullptr;
  std::vector<triax_option> options; // copied with the plugin's stride
};

/// The library's option of this name; null: it has none.
const triax_option* find_option(const Library& library, std::string_view name);

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

/// The way in which a command lets the user add search folders, besides TRIAX_PLUGIN_PATH.
enum class FolderChoice { none, key, flag }; // key: plugins.path of its run; flag: --path

/// The next step where a plugin is not found.
std::string add_folder_hint(FolderChoice choice);

/// The entry `name` in the first folder that has one, even a dangling symlink, which load() then rejects. Throws Error
/// with the searched folders and similar names. Its message begins with `plugin "name"`, so that a caller can prepend
/// the table: `schedule.plugin "...`.
/// The hint lists the installed plugins of `kind`; empty: of the kind whose prefix the name has.
Found find(std::string_view name, const std::vector<SearchFolder>& folders, std::string_view kind = {},
           FolderChoice choice = FolderChoice::none);
/// The same, but empty if no folder has the entry. Throws Error for an invalid name, and for a folder that cannot be
/// searched.
std::optional<Found> try_find(std::string_view name, const std::vector<SearchFolder>& folders);

/// The names of the files of a kind, ascending: those with its prefix. Loads nothing.
std::set<std::string> installed_names(std::string_view kind, const std::vector<SearchFolder>& folders);
/// "installed schedulers: sched-gpipe, ...".
std::string installed_text(std::string_view kind, const std::vector<SearchFolder>& folders);

/// Whether a command line's argument is the path of a plugin's file, not a name: it has a slash or ends with .so.
bool is_path(std::string_view given);
/// The file of a name or a path. Throws Error, also if the path does not exist.
Found locate(std::string_view given, const std::vector<SearchFolder>& folders, std::string_view kind = {},
             FolderChoice choice = FolderChoice::none);

/// Loads `file` and keeps it loaded; a second call returns the same result. `kind` may be empty (any).
const Library& load(const std::filesystem::path& file, std::string_view kind);

// For diagnosis: the steps of load(), without the checks of the descriptor.

/// Passes `file` to the dynamic linker, unless check_note() or check_core() refuse it.
void load_unchecked(const std::filesystem::path& file);
/// The same, then calls its entry function. May return null.
const triax_plugin* unchecked_descriptor(const std::filesystem::path& file);
/// Empty, or why the toolchain in the file's note is incompatible.
Refusals check_note(const ElfFile& elf);
/// Empty, or the other version of the core that the file is linked with. Loading it would load that core, too, with a
/// second copy of every class.
Refusals check_core(const ElfFile& elf);
/// "libtriax_core.so.0.1" for 0.1.2, and "libtriax_core.so.1" for 1.2.3: before 1.0, each minor version is
/// incompatible.
std::string core_soname(std::string_view version);

/// Whether load() has passed `file` to the dynamic linker, so that its initializers have run in this process.
bool is_loaded(const std::filesystem::path& file);

/// Destroys a plugin's object. A probe process records the call (plugin_call.hpp).
class Destroyer {
 public:
  Destroyer() = default; // for no object
  explicit Destroyer(const Library& library) : library_(&library), destroy_(library.descriptor->destroy) {}
  /// For an object that is not of a library.
  explicit Destroyer(void (*destroy)(void*)) : destroy_(destroy) {}

  void operator()(void* object) const noexcept;

 private:
  const Library* library_ = nullptr;
  void (*destroy_)(void*) = nullptr;
};

/// A plugin's object.
template <class Interface>
using Instance = std::unique_ptr<Interface, Destroyer>;

/// `folders`: where a plugin that wraps another finds that; empty: search_folders({}).
void* create_object(const Library& library, const PluginContext& context,
                    const std::vector<SearchFolder>& folders = {});

/// Creates the library's object. Throws Error with the plugin's message. The context must outlive the object.
template <class Interface>
Instance<Interface> create(const Library& library, const PluginContext& context,
                           const std::vector<SearchFolder>& folders = {}) {
  return {static_cast<Interface*>(create_object(library, context, folders)), Destroyer(library)};
}

} // namespace triax::plugin
