// SPDX-License-Identifier: Apache-2.0
#include "triax/options.hpp"

#include "triax/error.hpp"

namespace triax {

const OptionValue& Options::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error(triax::text("option \"{}\" has no value: it is required and not set, or is not in the plugin's option "
                            "table",
                            name),
                {}, "set it, or declare it in the table given to TRIAX_PLUGIN");
  }
  return found->second;
}

void Options::wrong_type(std::string_view name) const {
  throw Error(triax::text("option \"{}\" is read as a type that differs from the one in its option table", name));
}

bool Options::flag(std::string_view name) const {
  return as<bool>(name);
}
std::int64_t Options::integer(std::string_view name) const {
  return as<std::int64_t>(name);
}
double Options::number(std::string_view name) const {
  return as<double>(name);
}
const std::string& Options::text(std::string_view name) const {
  return as<std::string>(name);
}
const std::filesystem::path& Options::path(std::string_view name) const {
  return as<std::filesystem::path>(name);
}

} // namespace triax
