// SPDX-License-Identifier: Apache-2.0
// Counts of sectors, of wavefronts and of kinds of instructions, for Launch::profile.
#pragma once

#include "warp.hpp"

namespace triax::gpu_stand_in {

enum class Access { kRead, kWrite, kUpdate };
void count_access(Warp& warp, Space space, Access access, const std::uint64_t* addresses, std::uint32_t lanes,
                  std::uint32_t lane_bytes);

InstructionKind kind_of(const Instruction& instruction);

} // namespace triax::gpu_stand_in
