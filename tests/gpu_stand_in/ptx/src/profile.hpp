// SPDX-License-Identifier: Apache-2.0
// Counts of sectors and of wavefronts, for Launch::profile.
#pragma once

#include "warp.hpp"

namespace triax::gpu_stand_in {

void count_access(Warp& warp, Space space, const std::uint64_t* addresses, std::uint32_t lanes,
                  std::uint32_t lane_bytes);

} // namespace triax::gpu_stand_in
