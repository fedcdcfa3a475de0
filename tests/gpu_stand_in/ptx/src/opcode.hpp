// SPDX-License-Identifier: Apache-2.0
// Reads an opcode with its modifiers.
#pragma once

#include <string_view>

#include "code.hpp"

namespace triax::gpu_stand_in {

// Fills all of the instruction but its operands. Throws PtxError for a modifier that is not known.
void read_opcode(std::string_view opcode, unsigned line, Instruction& instruction);

} // namespace triax::gpu_stand_in
