// SPDX-License-Identifier: Apache-2.0
// End times of the actions in rows, if every rank runs as early as possible and transfers take no time.
//
// Threads: pure functions. Errors: Error if the rows cannot be completed.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/rules.hpp"

namespace triax::schedule {

/// End of each action, by rank and position, in unit passes: F, I and W take one, B two.
std::vector<std::vector<std::int64_t>> end_times(const std::vector<std::vector<Action>>& rows,
                                                 const StageMap& stage_map);

} // namespace triax::schedule
