// SPDX-License-Identifier: Apache-2.0
// Writes a whole file: its readers see the former content or the new one, never a part.
//
// Threads: any, one per file. Ownership: values. Blocking: writes. Errors: Error naming the file; then the former
// file is as it was.
#pragma once

#include <filesystem>
#include <string_view>

namespace triax::report {

/// The name under which a file is written before it gets its own.
std::filesystem::path temporary_name(const std::filesystem::path& file);

/// Creates or replaces the temporary file with `content`. Throws Error, naming `file`.
void write_temporary(const std::filesystem::path& file, std::string_view content);
/// Gives the temporary file its name. Throws Error.
void commit_temporary(const std::filesystem::path& file);
void remove_temporary(const std::filesystem::path& file) noexcept;

/// Both.
void replace_file(const std::filesystem::path& file, std::string_view content);

} // namespace triax::report
