// SPDX-License-Identifier: Apache-2.0
// Whether the memory that a plan asks for is there.
//
// Threads: any. Ownership: values. Blocking: reads a few small files. Errors: none: a refusal.
#pragma once

#include "train/preflight.hpp"
#include "triax/error.hpp"

namespace triax::train {

/// The planned memory of the ranks of this machine against what this process may use: the machine's memory, or less
/// where a control group (version 2, its own or one above it) limits it. Of a run on several machines it is not known
/// here which ranks these are: those that need least are counted.
Support fits_in_memory(const Preflight& preflight, const Placement& placement);

} // namespace triax::train
