// SPDX-License-Identifier: Apache-2.0
// Timelines of schedules as trace events, for chrome://tracing and ui.perfetto.dev.
//
// Threads: pure functions. Errors: those of time_span().
#pragma once

#include <span>
#include <string>

#include "draw/rank_trace.hpp"
#include "draw/schedule_svg.hpp"

namespace triax::draw {

/// One process per panel and one track per rank, with arrows from passes to dependent passes on other ranks. A unit of
/// time is drawn as a millisecond. Each of `ranks` is another process.
std::string schedule_trace(const Picture& picture, std::span<const RankTrace> ranks = {});

} // namespace triax::draw
