// SPDX-License-Identifier: Apache-2.0
// The options of a loaded plugin with their defaults, as an engine gives them to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/option_value.hpp"
#include "plugin/loader.hpp"

namespace triax::test {

using OptionValues = std::vector<std::pair<std::string, OptionValue>>;

/// Options that are not in `set` have their defaults.
inline Options default_options(const plugin::Library& library, const OptionValues& set = {}) {
  Options out;
  for (const triax_option& option : library.options)
    if (option.default_value) out.set(option.name, config::read_default(option).value.value());
  for (const auto& [key, value] : set) out.set(key, value);
  return out;
}

} // namespace triax::test
