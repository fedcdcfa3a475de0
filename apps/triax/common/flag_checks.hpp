// SPDX-License-Identifier: Apache-2.0
// Checks of a flag's value, whose messages name what is allowed and what was written. CLI11's own do only the one or
// the other. --help shows the allowed values as CLI11 does.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace triax::app {

/// "--cap must be an integer in [1, 8], got "x"".
CLI::Validator integer_in(long long least, long long most);

/// "--turn-ms must be a number in [0, 10000], got "nan"".
CLI::Validator number_in(double least, double most);

/// "--data must not be empty": most likely a variable of a shell that is not set.
CLI::Validator not_empty();

/// "--path must be a folder that exists, got "plugin"".
CLI::Validator existing_folder();

/// "--dtype must be f32, bf16 or f64, got "f8"".
CLI::Validator one_of(const std::vector<std::string>& names);

} // namespace triax::app
