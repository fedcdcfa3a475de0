// SPDX-License-Identifier: Apache-2.0
// Converts the text of a file or flag to a value that the key's declaration allows.
//
// Threads: any. Blocking: resolves paths in the file system. Errors: returned in a Reading.
#pragma once

#include <optional>
#include <string>

#include "config/merge.hpp"
#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/options.hpp"

namespace triax::config {

/// A value, or the problem: "steps = 1.5 is not an integer".
struct Reading {
  std::optional<OptionValue> value;
  ErrorCode code = ErrorCode::kWrongType;
  std::string problem;
  std::string hint;
};

/// Whether the value is written as a list.
bool is_written_as_list(const Setting& setting);
/// Relative paths start at the setting's base.
Reading read_setting(const triax_option& option, const Setting& setting);
/// The option's default. Its default_value must not be NULL.
Reading read_default(const triax_option& option);

} // namespace triax::config
