// SPDX-License-Identifier: Apache-2.0
// What matters first of a run with many ranks: the rank that needs most memory and why, whether it fits, how even the
// stages are, and which ranks are alike.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: none. Of a run that was accepted.
#pragma once

#include <string>

#include "check_report.hpp"

namespace triax::app {

/// A few sentences, a line each; they may be folded.
std::string summary_text(const CheckReport& report);

/// A table with a row for all ranks that hold as many layers of each kind and as much memory, the largest first.
std::string groups_text(const train::Preflight& preflight);

} // namespace triax::app
