// SPDX-License-Identifier: Apache-2.0
// Reads a whole TOML text from a file, a pipe or a device: bounded in size, so that an endless source does not fill the
// memory, and in time, so that a pipe without a writer does not block indefinitely.
//
// Threads: any. Ownership: values. Blocking: reads; of a pipe, up to ReadLimits::silence. Errors: Error at `shown`.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace triax::config {

struct ReadLimits {
  std::size_t bytes = std::size_t{8} << 20;
  std::chrono::milliseconds silence{60'000}; // without a byte from a pipe
};

/// `shown`: how errors name the file.
std::string read_text(const std::filesystem::path& file, const std::string& shown, const ReadLimits& limits = {});

/// Whether it can be read only once, or in this process alone, and is in no folder of the user's: an open file by its
/// number ("/dev/stdin", "/dev/fd/63"), whatever it is, a FIFO or a device. Relative paths in such a text begin at the
/// working folder.
bool is_piped(const std::filesystem::path& file);

} // namespace triax::config
