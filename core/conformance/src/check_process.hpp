// SPDX-License-Identifier: Apache-2.0
// Processes that run checks and ranks: forked, they answer with the failures that they found. What each rank is doing
// is in memory that all of them share, so that a report of a crash or a hang can say it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "triax/conformance/report.hpp"

namespace triax::conformance {

/// Activities in memory that this process and those that it forks share. Throws Error if the system has no memory.
std::shared_ptr<Activities> make_shared_activities();

/// "in rows()", "rank 0 in all_reduce(), rank 2 in wait()": the named calls that the check and its ranks are in; of one
/// rank, unless it is -1.
std::string calls_text(const Activities& activities, int rank = -1);

/// Texts as one answer of a process, and back.
std::string to_answer(const std::vector<std::string>& texts);
std::vector<std::string> from_answer(const std::string& answer);

} // namespace triax::conformance
