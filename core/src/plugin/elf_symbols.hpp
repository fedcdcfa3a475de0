// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a library, read from its file without loading it.
//
// Threads: any. Ownership: values. Blocking: maps the file, and reads its symbol table only: a library may have
// hundreds of megabytes. Errors: none; a file that cannot be read, or is damaged, has no symbols.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_set>
#include <vector>

namespace triax::plugin {

struct DynamicSymbols {
  std::vector<std::string> defined;   // what the library exports, mangled, in the order of the file
  std::vector<std::string> undefined; // what it needs; without weak symbols, which may stay undefined
};

DynamicSymbols read_symbols(const std::filesystem::path& file);

/// Whether the library exports `symbol`.
bool exports(const std::filesystem::path& file, const std::string& symbol);

/// Removes the symbols that the library exports from `symbols`.
void remove_exported(const std::filesystem::path& file, std::unordered_set<std::string>& symbols);

} // namespace triax::plugin
