// SPDX-License-Identifier: Apache-2.0
// Checks the layout of a run that generates text.
#pragma once

#include "config/values.hpp"
#include "triax/error.hpp"

namespace triax::config {

/// Refuses what divides samples, and what only a training step has.
Refusals check_generating(const Values& values);

} // namespace triax::config
