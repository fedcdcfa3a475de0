// SPDX-License-Identifier: Apache-2.0
// Summary of a run with many ranks: the rank that needs most memory and why, whether it fits, what a step communicates,
// how even the stages are, and groups of equal ranks.
//
// Threads: pure functions. Only for runs without errors.
#pragma once

#include <string>

#include "check/check_report.hpp"

namespace triax::app {

/// Some sentences, one per line; the caller may fold them.
std::string summary_text(const CheckReport& report);

/// A table with one row for all ranks with the same layers of each kind and the same memory, largest first.
std::string groups_text(const train::Preflight& preflight);

} // namespace triax::app
