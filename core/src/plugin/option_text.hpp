// SPDX-License-Identifier: Apache-2.0
// Options of a plugin: parses and checks values.
//
// Threads: any. Errors: parse_option() throws Error whose message begins with the option's name; the caller adds
// position and plugin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/options.hpp"

namespace triax::plugin {

/// "int", "list of float"; empty for a type that the plugin ABI does not have.
std::string type_name(std::uint32_t type);

/// `text` as in a default or in --set: TOML, but a string or path needs no quotes. Does not check limits.
OptionValue parse_option(const triax_option& option, std::string_view text);

/// Empty, or how the value violates the option's limits or choices: "timeout_s must be in [1, 86400], got 0".
/// `written`: the value as TOML, if that is known.
Refusals check_option(const triax_option& option, const OptionValue& value, std::string_view written = {});

/// "1..86400", "spin|yield|event", or empty: what the option allows beyond its type.
std::string limits_text(const triax_option& option);

/// The value as TOML text: 600, true, "auto", [1, 2].
std::string to_toml(const OptionValue& value);

/// Empty, or the defect of a row of an option table: unknown type, bad name, no doc, a default that does not fit.
Refusals check_row(const triax_option& option);

} // namespace triax::plugin
