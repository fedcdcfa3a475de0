// SPDX-License-Identifier: Apache-2.0
// A timeline as one JSON object, an action to a line (docs/schedules.md has the form).
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error at what extent() throws at.
#pragma once

#include <string>

#include "schedule/timeline.hpp"

namespace triax::report {

/// `name`: whose schedule it is.
std::string schedule_json(const std::string& name, const schedule::Timeline& timeline);

} // namespace triax::report
