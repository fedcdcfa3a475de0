// SPDX-License-Identifier: Apache-2.0
#include "common/list_option.hpp"

#include <string>

#include "triax/text.hpp"

namespace triax::app {

namespace {

// Below the numbers of values from which CLI11 accepts one value per flag only (2^29 / 16).
constexpr int kMaxValues = 1 << 24;

} // namespace

CLI::Option* repeated(CLI::Option* flag) {
  return flag->take_all()->allow_extra_args(false);
}

CLI::Option* with_several_values(CLI::Option* flag) {
  flag->option_text(flag->get_type_name() + " ..." + (flag->get_required() ? " REQUIRED" : "")); // as CLI11 for a list
  return flag->expected(1, kMaxValues)->allow_extra_args(false);
}

bool has_several_values(const CLI::Option& option) {
  const int most = option.get_items_expected_max();
  return most > 1 && (option.get_allow_extra_args() || most <= kMaxValues);
}

CLI::Option* with_several_paths(CLI::App& verb, CLI::Option* positional) {
  verb.validate_positionals(); // before CLI11 splits the value
  const auto check = [name = positional->get_name()](const std::string& written) {
    if (!written.starts_with('[') || !written.ends_with(']')) return std::string();
    // Not a ValidationError, after which CLI11 tries the next positional.
    throw CLI::ParseError(
        text("{}: cannot be \"{}\", which is the form of a list; write \"./{}\"", name, written, written),
        CLI::ExitCodes::ValidationError);
  };
  return positional->check(CLI::Validator(check, {}));
}

} // namespace triax::app
