// SPDX-License-Identifier: Apache-2.0
// Limits of a run's sizes that must hold before a layout or a schedule is made.
//
// Threads: pure functions. Errors: returned.
#pragma once

#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::train {

/// Ranks of the layout: at most kMaxWorld.
Refusals check_world(const config::RunConfig& run);

/// Actions and pipeline ranks of a step: at most schedule::kMaxActions and schedule::kMaxRanks.
Refusals check_step_size(const config::RunConfig& run);

} // namespace triax::train
