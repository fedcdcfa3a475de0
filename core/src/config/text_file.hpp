// SPDX-License-Identifier: Apache-2.0
// Reads a TOML text from a file, a pipe or a device (os/text_input.hpp).
//
// Threads: any. Blocking: reads; a pipe for up to `silence`. Errors: Error located at `shown`.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "triax/error.hpp"

namespace triax::config {

/// `shown`: how errors name the file. `silence`: the longest time without a byte from a pipe.
std::string read_text(const std::filesystem::path& file, const std::string& shown,
                      std::chrono::milliseconds silence = std::chrono::minutes(1));

/// The code of an error of read_text() that is not about the content.
ErrorCode code_of_unreadable(const std::filesystem::path& file);

/// Whether `file` can be read only once or only in this process: an open descriptor ("/dev/stdin", "/dev/fd/63"), a
/// FIFO or a device. Relative paths in such a text start at the working folder.
bool is_piped(const std::filesystem::path& file);

} // namespace triax::config
