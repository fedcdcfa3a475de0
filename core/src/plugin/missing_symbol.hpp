// SPDX-License-Identifier: Apache-2.0
// Hint for a plugin that lacks a symbol: which library defines the symbol, and how to link that library.
//
// Threads: any. Blocking: reads the engine's own libraries. Errors: none; unreadable libraries are skipped.
#pragma once

#include <filesystem>
#include <string>

namespace triax::plugin {

/// The C++ name of a mangled symbol; other names are returned unchanged.
std::string demangled(const std::string& symbol);

/// "libtriax_cuda.so exports it: triax_add_plugin(NAME SOURCES ... LINK triax::cuda)". `symbol`: as the linker reports
/// it.
std::string link_hint(const std::string& symbol, const std::string& plugin);
/// The same with an explicit folder of the engine's libraries.
std::string link_hint(const std::string& symbol, const std::string& plugin, const std::filesystem::path& libraries);

} // namespace triax::plugin
