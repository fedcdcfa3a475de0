// SPDX-License-Identifier: Apache-2.0
// Compares what the ranks of a group post. Ranks that post different collectives wait for each other indefinitely.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "triax/communicator.hpp"

namespace triax::train {

/// The first difference between the collectives of rank 0 and of rank `other` of the tensor group: "call 2 is
/// all_reduce of 12 f32 (sum) on tensor rank 0 and all_reduce of 24 f32 (sum) on tensor rank 1". Empty if there is
/// none.
std::string collective_difference(std::span<const Collective> of_first, std::span<const Collective> of_other,
                                  int other);

} // namespace triax::train
