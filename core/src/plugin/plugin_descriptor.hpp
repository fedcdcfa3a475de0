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
#include "triax/error.hpp"

namespace triax::plugin {

// The checks, in their order.
inline constexpr std::string_view kAbiCheck =
    "plugin ABI"; // magic, version, size: without it, no other field can be read
inline constexpr std::string_view kToolchainCheck = "toolchain";
inline constexpr std::string_view kInterfaceCheck = "interface"; // kind and version
inline constexpr std::string_view kNameCheck = "name";
inline constexpr std::string_view kContentsCheck = "descriptor"; // version, description, functions
inline constexpr std::string_view kOptionsCheck = "options";

struct DescriptorFault {
  std::string_view check; // one of the names above
  Error error;
};

/// All faults of a descriptor, which may be null, in the order of the checks. `options`: a copy of the option table, as
/// far as it can be read.
std::vector<DescriptorFault> descriptor_faults(const triax_plugin* descriptor, const std::filesystem::path& file,
                                               std::vector<triax_option>& options);

/// Returns a copy of the option table, read with the plugin's stride. The file's stem must be the plugin's name. Throws
/// the first fault.
std::vector<triax_option> check_descriptor(const triax_plugin* descriptor, const std::filesystem::path& file);

/// Throws Error unless the plugin is of `kind` and can create objects.
void check_kind(const triax_plugin& descriptor, std::string_view kind, const std::filesystem::path& file);

/// Keys of the core in the table of a kind, except `plugin`: "lr" for an optimizer. Options must not have these names.
std::span<const std::string_view> core_keys(std::string_view kind);

} // namespace triax::plugin
