// SPDX-License-Identifier: Apache-2.0
// What of [launch] cannot work on this machine, asked before any rank is started.
//
// Threads: any. Ownership: values. Blocking: resolving a name may ask the network; reads a small file. Errors: none:
// refusals whose reasons name keys in full.
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::launch {

/// Of a run whose ranks are processes; threads of one process need nothing of [launch].
std::vector<Support> check_keys(const config::LaunchKeys& keys);

} // namespace triax::launch
