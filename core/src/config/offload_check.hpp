// SPDX-License-Identifier: Apache-2.0
// Checks the keys of memory.offload that change a training.
//
// Threads: pure function. Errors: returned.
#pragma once

#include "config/values.hpp"
#include "triax/error.hpp"

namespace triax::config {

/// Delayed updates without a host that updates: the training would be another one than the file says.
Refusals check_offload(const Values& values);

} // namespace triax::config
