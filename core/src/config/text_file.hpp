// SPDX-License-Identifier: Apache-2.0
// Reads a TOML text from a file, a pipe or a device. The size is limited, so that an endless source does not fill the
// memory; the time is limited, so that a pipe without a writer does not block indefinitely.
//
// Threads: any. Blocking: reads; a pipe for up to ReadLimits::silence. Errors: Error located at `shown`.
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

/// Whether `file` can be read only once or only in this process: an open descriptor ("/dev/stdin", "/dev/fd/63"), a
/// FIFO or a device. Relative paths in such a text start at the working folder.
bool is_piped(const std::filesystem::path& file);

} // namespace triax::config
