// SPDX-License-Identifier: Apache-2.0
// Checks whether a run can continue from the checkpoint that it finds, before it starts.
#pragma once

#include <span>
#include <string>

#include "checkpoint/manifest.hpp"
#include "executor/parameters.hpp"
#include "train/check_guard.hpp"
#include "train/plugins.hpp"

namespace triax::train {

/// Adds errors to those of `guarded`. `computes`: the kernel set does. `has_weights`: the run trains or reads some.
/// Returns the text of Preflight::resume.
std::string check_checkpoint(const config::RunConfig& run, const RankPlugins& plugins, bool computes, bool has_weights,
                             std::span<const executor::GlobalParameter> parameters, const checkpoint::DataContent& data,
                             CheckGuard& guarded);

} // namespace triax::train
