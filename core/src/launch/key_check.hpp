// SPDX-License-Identifier: Apache-2.0
// Checks before any rank starts that the keys of [launch] can work on this machine.
//
// Threads: any. Blocking: name resolution may use the network; reads a small file. Errors: returned; their reasons
// contain full names of keys.
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::launch {

/// For runs whose ranks are processes. Runs with threads do not use [launch].
Refusals check_keys(const config::LaunchKeys& keys);

} // namespace triax::launch
