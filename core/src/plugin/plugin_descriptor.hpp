// SPDX-License-Identifier: Apache-2.0
// Checks a plugin's descriptor before the engine uses it.
//
// Threads: any. Ownership: the descriptor is static storage of the plugin. Errors: Error located at the file, for the
// first failed check. The order of checks is that of the plugin ABI: magic, size, ABI, toolchain, kind, interface,
// name, texts, functions, options.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "triax/abi.h"

namespace triax::plugin {

/// Returns a copy of the option table, read with the plugin's stride. The file's stem must be the plugin's name.
std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file);

/// Throws Error unless the plugin is of `kind` and can create objects.
void check_kind(const triax_plugin& descriptor, std::string_view kind, const std::filesystem::path& file);

/// Keys of the core in the table of a kind, except `plugin`: "lr" for an optimizer. Options must not have these names.
std::span<const std::string_view> core_keys(std::string_view kind);

} // namespace triax::plugin
