// SPDX-License-Identifier: Apache-2.0
// A run's step as it was measured, above the same step as it was planned, and what lies between them.
//
// Threads: one. Ownership: values. Blocking: reads the timelines in the run's folder. Errors: Error where there are
// none, or those of another run; what is too large to draw is told, never thrown.
#pragma once

#include <string>

#include "schedule_drawing.hpp"

namespace triax::app {

/// Of the pipeline ranks that share rank 0's data and tensor coordinates. `format`: table, svg, json or trace. The
/// source is a run.
ScheduleDrawing draw_measured(const std::string& format, const ScheduleSource& source, const ProvedSchedule& proved);

} // namespace triax::app
