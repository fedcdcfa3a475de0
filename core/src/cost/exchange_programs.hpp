// SPDX-License-Identifier: Apache-2.0
// Programs of the passes of a step for training programs whose ranks wait for their transfers, such as Megatron-LM:
// between two groups of passes there is one set of transfers, which sends what the first group has made and receives
// what the second one reads.
//
// Threads: pure functions. Errors: those of Program.
#pragma once

#include <vector>

#include "schedule/program.hpp"
#include "triax/scheduler.hpp"

namespace triax::cost {

/// The content of a group: one pass, or, with model chunks, a forward and the backward directly after it.
enum class PassGroups { passes, pairs };

std::vector<schedule::Program> exchange_programs(const Schedule& schedule, schedule::Boundaries boundaries,
                                                 PassGroups groups);

} // namespace triax::cost
