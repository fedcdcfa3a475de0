// SPDX-License-Identifier: Apache-2.0
// Values of options as JSON, and the other way.
//
// Threads: pure functions. Errors: none. Included only by files that use nlohmann-json.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/strict_json.hpp"
#include "plugin/option_text.hpp"
#include "triax/abi.h"

namespace triax::hf {

/// The text of an option for a value of its type, without the table's translations. Empty: a value of another type, or
/// an option whose type no key of config.json has.
inline std::optional<std::string> option_text(const checkpoint::Json& value, const triax_option& row) {
  switch (row.type) {
    case TRIAX_OPTION_BOOL:
      return value.is_boolean() ? std::optional(value.dump()) : std::nullopt;
    case TRIAX_OPTION_INT:
      return value.is_number_integer() ? std::optional(value.dump()) : std::nullopt;
    case TRIAX_OPTION_FLOAT:
      return value.is_number() ? std::optional(value.dump()) : std::nullopt;
    case TRIAX_OPTION_STRING:
      return value.is_string() ? std::optional(plugin::to_toml(value.get<std::string>())) : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// The value of an option as JSON.
inline std::string json_of(const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return checkpoint::Json(*flag).dump();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return checkpoint::Json(*number).dump();
  if (const auto* number = std::get_if<double>(&value)) return checkpoint::Json(*number).dump();
  return checkpoint::Json(std::get<std::string>(value)).dump();
}

/// 1 and 1.0 are equal. Both must be valid JSON.
inline bool is_same_json(const std::string& a, const std::string& b) {
  return checkpoint::Json::parse(a) == checkpoint::Json::parse(b);
}

} // namespace triax::hf
