// SPDX-License-Identifier: Apache-2.0
// Options that take a list of values, each as the user wrote it. CLI11 alone reads a value in brackets as a list:
// "[PAD]" becomes "PAD", and "[a,b]" becomes "a" and "b".
//
// Threads: the main thread. Errors: of CLI11.
#pragma once

#include <CLI/CLI.hpp>

namespace triax::app {

/// Flag with one value, which may be repeated: --path A --path B.
CLI::Option* repeated(CLI::Option* flag);

/// Flag with several values: --input A B. Call it after the flag's type_name() and required().
CLI::Option* with_several_values(CLI::Option* flag);

/// Whether words after the first value of `option` are its values too.
bool has_several_values(const CLI::Option& option);

/// Positional paths: the last argument of `verb`, CHECKPOINT... CLI11 needs brackets there, so they are refused.
CLI::Option* with_several_paths(CLI::App& verb, CLI::Option* positional);

} // namespace triax::app
