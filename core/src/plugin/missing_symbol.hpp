// SPDX-License-Identifier: Apache-2.0
// The next step for a plugin whose library lacks a symbol: which library defines it, and how to link that one.
//
// Threads: any. Ownership: values. Blocking: reads the engine's own libraries. Errors: none; what cannot be read is
// left out.
#pragma once

#include <filesystem>
#include <string>

namespace triax::plugin {

/// The C++ name of a mangled symbol; any other name as it is.
std::string demangled(const std::string& symbol);

/// "libtriax_cuda.so exports it: triax_add_plugin(NAME SOURCES ... LINK triax::cuda)". `symbol` as the linker has it.
std::string link_hint(const std::string& symbol, const std::string& plugin);
/// The same with the folder of the engine's libraries given.
std::string link_hint(const std::string& symbol, const std::string& plugin, const std::filesystem::path& libraries);

} // namespace triax::plugin
