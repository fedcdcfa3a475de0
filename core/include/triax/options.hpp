// SPDX-License-Identifier: Apache-2.0
// Values of one plugin's TOML table, as its constructor gets them. Every option of the option table has a value of its
// type and in its range; options that the user did not set have their default.
//
// Threads: read-only after the core has filled it; any thread. Ownership: the core's; valid as long as the plugin's
// object. Blocking: never. Errors: a name or type that the option table does not declare throws Error; this is a bug in
// the plugin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "triax/export.hpp"

namespace triax {

/// The value of an option: one of the types of triax_option_type.
using OptionValue = std::variant<bool, std::int64_t, double, std::string, std::filesystem::path, std::vector<bool>,
                                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>,
                                 std::vector<std::filesystem::path>>;

/// The options of a plugin, by name, parsed and checked against its table.
class TRIAX_API Options {
 public:
  /// Sets an option; whether it is set; its value, which must be set.
  /// @{
  void set(std::string name, OptionValue value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  const OptionValue& value(std::string_view name) const;
  /// @}

  /// The value of an option of this type. Throws Error if it is not set, or has another type.
  /// @{
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::filesystem::path& path(std::string_view name) const;
  template <class Element>
  const std::vector<Element>& list(std::string_view name) const {
    return as<std::vector<Element>>(name);
  }
  /// @}

 private:
  template <class T>
  const T& as(std::string_view name) const {
    const T* found = std::get_if<T>(&value(name));
    if (!found) wrong_type(name);
    return *found;
  }
  [[noreturn]] void wrong_type(std::string_view name) const;

  std::map<std::string, OptionValue, std::less<>> values_;
};

} // namespace triax
