// SPDX-License-Identifier: Apache-2.0
// A timeline as one JSON object, one action per line (docs/schedules.md describes the format).
//
// Threads: pure functions. Errors: those of time_span().
#pragma once

#include <string>

#include "schedule/timeline.hpp"

namespace triax::draw {

/// `name`: the scheduler.
std::string schedule_json(const std::string& name, const schedule::Timeline& timeline);

} // namespace triax::draw
