// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into words, numbers and punctuation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu_stand_in/machine.hpp"

namespace triax::gpu_stand_in {

struct Token {
  std::string_view text; // of the module's text; an opcode with its modifiers is one token
  unsigned line = 0;
};

// Throws PtxError for a character that PTX does not have. `line`: of the first character.
std::vector<Token> split_tokens(std::string_view ptx, unsigned line = 1);
// The same, but the body of a function is one token, with its braces: most kernels of a module are not used.
std::vector<Token> split_module(std::string_view ptx);

[[noreturn]] void refuse(unsigned line, std::string_view what, std::string_view token);

} // namespace triax::gpu_stand_in
