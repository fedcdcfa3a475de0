// SPDX-License-Identifier: Apache-2.0
// Limits of a run's sizes that must hold before a layout or a schedule is made, and of what plugins answer.
//
// Threads: pure functions. Errors: returned; those of plugins' answers are thrown.
#pragma once

#include <cstddef>

#include "config/run_config.hpp"
#include "triax/error.hpp"
#include "triax/model.hpp"
#include "triax/scheduler.hpp"

namespace triax::train {

/// Ranks of the layout: at most kMaxWorld.
Refusals check_world(const config::RunConfig& run);

/// Actions and pipeline ranks of a step: at most schedule::kMaxActions and schedule::kMaxRanks.
Refusals check_step_size(const config::RunConfig& run);

/// Limits far above what runs need: loops over more would not end in reasonable time.
/// @{
inline constexpr std::size_t kMaxStates = 64; // tensors of an optimizer
void require_count(const Model& model);
void require_actions(const Schedule& rows);
/// @}

} // namespace triax::train
