// SPDX-License-Identifier: Apache-2.0
// Replaces a whole file atomically: readers see the old or the new content, never a part, also after a loss of power.
//
// Threads: any, one per file. Blocking: writes, and waits for the disk. Errors: Error with the file;
// the old file is then unchanged.
#pragma once

#include <filesystem>
#include <string_view>

namespace triax::os {

/// Name of the temporary file that is written first.
std::filesystem::path temporary_name(const std::filesystem::path& file);

/// Creates or replaces the temporary file with `content`. Throws Error with `file`.
void write_temporary(const std::filesystem::path& file, std::string_view content);
/// Renames the temporary file to `file`. Throws Error.
void commit_temporary(const std::filesystem::path& file);
void remove_temporary(const std::filesystem::path& file) noexcept;

/// write_temporary() and commit_temporary().
void replace_file(const std::filesystem::path& file, std::string_view content);

} // namespace triax::os
