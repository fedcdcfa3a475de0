// SPDX-License-Identifier: Apache-2.0
// Words of the commands that messages propose, so that they can be copied to a shell.
//
// Blocking: queries the file system. Errors: none.
#pragma once

#include <filesystem>
#include <string>

namespace triax::app {

/// From the working folder, if that is shorter.
std::filesystem::path from_here(const std::filesystem::path& path);

/// Quotes a word for a shell if necessary, as $'...' (POSIX.1-2024) if it has control characters.
std::string shell_word(const std::string& text);

/// The command that runs this program: its name if PATH leads to it, else its path.
std::string program();

} // namespace triax::app
