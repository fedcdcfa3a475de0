// SPDX-License-Identifier: Apache-2.0
// From what is written in a file or a flag to a value that its key's row allows.
//
// Threads: any. Ownership: values. Blocking: looks at the file system for paths. Errors: a reading says what is wrong.
#pragma once

#include <optional>
#include <string>

#include "config/layers.hpp"
#include "triax/abi.h"
#include "triax/options.hpp"

namespace triax::config {

/// A value, or what is wrong with it: "steps = 1.5 is not an integer".
struct Reading {
  std::optional<OptionValue> value;
  std::string problem;
  std::string hint;
};

/// Relative paths begin at the setting's base.
Reading read_setting(const triax_option& option, const Setting& setting);
/// The option's default; its default_value must not be NULL.
Reading read_default(const triax_option& option);

} // namespace triax::config
