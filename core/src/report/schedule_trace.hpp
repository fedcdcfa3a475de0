// SPDX-License-Identifier: Apache-2.0
// Timelines of schedules as trace events: what chrome://tracing and ui.perfetto.dev open.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error at what extent() throws at.
#pragma once

#include <span>
#include <string>

#include "report/rank_trace.hpp"
#include "report/schedule_svg.hpp"

namespace triax::report {

/// A process for each panel and a track for each rank; an arrow from each pass to what needs it on another rank. A unit
/// of time is drawn as a millisecond. After the panels a process for each of `ranks`.
std::string schedule_trace(const Picture& picture, std::span<const RankTrace> ranks = {});

} // namespace triax::report
