// SPDX-License-Identifier: Apache-2.0
// The ratio of two sides as JSON, of `triax compare` and `triax bench`.
//
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>

#include "compare/paired_ratio.hpp"

namespace triax::app {

/// {"value", "interval_95": [low, high], "interval_99": [low, high], "is_significant", "log_deviation", "rounds"}
nlohmann::ordered_json ratio_json(const compare::Ratio& ratio);

} // namespace triax::app
