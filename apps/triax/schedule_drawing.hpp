// SPDX-License-Identifier: Apache-2.0
// A proved schedule in one of the formats of `triax schedule`.
//
// Threads: one. Ownership: values. Blocking: never. Errors: what is too large to draw is told, never thrown.
#pragma once

#include <optional>
#include <string>

#include "pass_flags.hpp"
#include "proved_schedule.hpp"
#include "report/schedule_svg.hpp"

namespace triax::app {

struct DrawingRequest {
  std::string format;                             // table, svg, json, trace
  std::optional<PassFlags> passes = std::nullopt; // empty: F, I and W take a unit of time, and transfers none
  bool colour = false;                            // of a table
  int columns = 0;                                // of the terminal that a table has to fit; 0: none
};

struct ScheduleDrawing {
  std::string result;
  Support support; // if no, there is no result
};

/// "sched-1f1b: p = 4, m = 8, v = 1", and what its options are set to: ", group = 8"
std::string name_and_shape(const ScheduleSource& source);

/// A picture, if it can still be read.
ScheduleDrawing svg(const report::Picture& picture);

ScheduleDrawing draw(const DrawingRequest& request, const ScheduleSource& source, const ProvedSchedule& proved);

} // namespace triax::app
