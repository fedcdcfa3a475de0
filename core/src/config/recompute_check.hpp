// SPDX-License-Identifier: Apache-2.0
// Checks memory.recompute with the keys that it depends on.
//
// Threads: pure function. Errors: returned.
#pragma once

#include "config/values.hpp"
#include "triax/error.hpp"

namespace triax::config {

/// An automatic split with several values, and a budget that is missing or is not a size.
Refusals check_recompute(const Values& values);

} // namespace triax::config
