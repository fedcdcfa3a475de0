// SPDX-License-Identifier: Apache-2.0
// Completions of the command line for bash, zsh and fish.
#pragma once

#include <string>
#include <vector>

#include "command_table.hpp"
#include "key_table.hpp"

namespace triax::reference {

/// `functions`: the text of completion.bash, whose line @ROWS@ is replaced.
std::string bash_completion(const Command& program, const std::vector<Key>& keys, std::string functions);
std::string zsh_completion(const Command& program, const std::vector<Key>& keys);
std::string fish_completion(const Command& program, const std::vector<Key>& keys);

/// "table csv svg"
std::string joined(const std::vector<std::string>& words);

} // namespace triax::reference
