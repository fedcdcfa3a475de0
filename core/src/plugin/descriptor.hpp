// SPDX-License-Identifier: Apache-2.0
// The checks of a plugin's descriptor: what is read before anything in it is trusted.
//
// Threads: any. Ownership: values; the descriptor is the plugin's static storage. Blocking: never. Errors: Error whose
// `where` is the file, one sentence per check, in the order of the door: magic, size, ABI, toolchain, kind, interface,
// name, texts, functions, options.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "triax/abi.h"

namespace triax::plugin {

/// Returns the option table, copied out by the plugin's own stride. The file's stem must be the plugin's name.
std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file);

/// Throws unless the plugin is of `kind` and can make objects of it.
void check_kind(const triax_plugin& descriptor, std::string_view kind, const std::filesystem::path& file);

/// Keys of the core in the table of a kind, which no option may be named like: "lr" for an optimizer. Without `plugin`.
std::span<const std::string_view> core_keys(std::string_view kind);

} // namespace triax::plugin
