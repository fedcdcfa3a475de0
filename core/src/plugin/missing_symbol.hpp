// SPDX-License-Identifier: Apache-2.0
// Hints for a plugin that does not load: which library defines a symbol that it lacks and how to link that library, or
// what to do about a library that is missing.
//
// Threads: any. Blocking: reads the engine's own libraries. Errors: none; unreadable libraries are skipped.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plugin/elf_note.hpp"

namespace triax::plugin {

/// The C++ name of a mangled symbol; other names are returned unchanged.
std::string demangled(const std::string& symbol);

/// "libtriax_cuda.so exports it: triax_add_plugin(NAME SOURCES ... LINK triax::cuda)". `symbol`: as the linker reports
/// it.
std::string link_hint(const std::string& symbol, const std::string& plugin);
/// "link it: triax_add_plugin(NAME SOURCES ... LINK triax::cuda)"
std::string link_text(const std::string& plugin, std::string_view target);
/// link_hint() for a symbol of a library of the engine, or one whose name shows its library; else empty.
std::string known_owner_hint(const std::string& symbol, const std::string& plugin,
                             const std::filesystem::path& libraries);
/// link_hint() with an explicit folder of the engine's libraries.
std::string link_hint(const std::string& symbol, const std::string& plugin, const std::filesystem::path& libraries);

/// "its ELF note names Triax 0.0.9, but this is Triax 0.1.0: rebuild the plugin"; empty for a plugin that was built for
/// this triax.
std::string rebuild_hint(const Note& note);
/// Whether the symbol is one of the engine's, and the note names another version of the engine.
bool is_of_other_engine(const std::string& symbol, const Note& note);

/// "install libx.so.1, put its folder on LD_LIBRARY_PATH, or ..."
std::string missing_library_hint(const std::string& library);

} // namespace triax::plugin
