// SPDX-License-Identifier: Apache-2.0
// Checks that this machine has the planned memory.
//
// Threads: any. Blocking: reads a few small files. Errors: returned.
#pragma once

#include "train/preflight.hpp"
#include "triax/error.hpp"

namespace triax::train {

/// Compares the planned memory of the ranks on this machine, of GPUs what they pin on their host, with what this
/// process may use: the machine's memory, or less if a control group (version 2, the process's or one above it) limits
/// it. In a run on several machines, the ranks of this machine are not known here, so the ranks that need least are
/// counted.
Refusals fits_in_memory(const Preflight& preflight, const Placement& placement);

} // namespace triax::train
