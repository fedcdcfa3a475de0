// When the actions of rows end if every rank goes on as soon as it can and transfers take no time.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error if the rows never get to their ends.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/rules.hpp"

namespace triax::schedule {

/// The end of each action, by rank and position, in unit passes: F, I and W take one, B two.
std::vector<std::vector<std::int64_t>> end_times(const std::vector<std::vector<Action>>& rows,
                                                 const StageMap& stage_map);

} // namespace triax::schedule
