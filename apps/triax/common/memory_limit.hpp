// SPDX-License-Identifier: Apache-2.0
// Memory of each rank's device, the --memory of `triax check` and `triax fit`, and whether a plan fits in it.
//
// Threads: pure functions. Errors: returned.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.hpp"
#include "train/preflight.hpp"
#include "triax/error.hpp"

namespace triax::app {

struct MemoryLimit {
  std::string written; // "80GiB"
  std::uint64_t bytes = 0;
};

/// Empty, or why the text is invalid. Valid is a number above 0 and a unit: B, kB to PB (powers of 1000) or KiB to PiB
/// (powers of 1024).
std::string is_memory_limit(const std::string& written);
/// The text must be valid.
MemoryLimit parse_memory_limit(const std::string& written);

/// The plan that needs most memory; the first of equals. There must be one.
const train::RankPlan& largest_plan(const train::Preflight& preflight);

/// The reason names the rank that needs most, its largest parts, how many ranks do not fit, and what reduces the
/// memory.
Refusals fits(const MemoryLimit& limit, const config::RunConfig& run, const train::Preflight& preflight);

} // namespace triax::app
