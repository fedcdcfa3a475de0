// SPDX-License-Identifier: Apache-2.0
// A flag that names a file to write, such as --output and --html.
//
// Blocking: reads folders, writes files. Errors: write_output() throws Error with the file.
#pragma once

#include <filesystem>
#include <string>

namespace triax::app {

/// Whether it is, or can become, a regular file.
bool is_replaced(const std::filesystem::path& file);

/// Empty if the file can be written; else what is wrong with the flag's value. Does not create the file. For
/// CLI::Validator.
std::string output_file_error(const std::string& file);

/// Replaces a regular file atomically; writes to a stream, device or pipe. Empty `file`: to stdout.
void write_output(const std::string& result, const std::string& file);

} // namespace triax::app
