// SPDX-License-Identifier: Apache-2.0
// Validators whose messages give the allowed values and the value passed; CLI11's give only one of these. --help shows
// the allowed values as CLI11 does.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace triax::app {

/// "--cap must be an integer in [1, 8], got "x"".
CLI::Validator integer_in(long long min, long long max);

/// "--turn-ms must be a number in [0, 10000], got "nan"".
CLI::Validator number_in(double min, double max);

/// "--data must not be empty": usually an unset shell variable.
CLI::Validator not_empty();

/// "--path must be a folder that exists, got "plugin"".
CLI::Validator existing_folder();

/// "--dtype must be f32, bf16 or f64, got "f8"".
CLI::Validator one_of(const std::vector<std::string>& names);

} // namespace triax::app
