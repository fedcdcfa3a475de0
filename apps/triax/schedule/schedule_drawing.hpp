// SPDX-License-Identifier: Apache-2.0
// Draws a verified schedule in one of the formats of `triax schedule`.
//
// Errors: if the result would be too large, ScheduleDrawing::refusals says so.
#pragma once

#include <optional>
#include <string>

#include "draw/schedule_svg.hpp"
#include "schedule/pass_flags.hpp"
#include "schedule/verified_schedule.hpp"

namespace triax::app {

struct DrawingRequest {
  std::string format;                             // table, svg, json, trace
  std::optional<PassFlags> passes = std::nullopt; // empty: F, I, W and R take a unit of time, transfers none
  bool colour = false;                            // of a table
  int columns = 0;                                // width of the terminal for a table; 0: unlimited
};

struct ScheduleDrawing {
  std::string result;
  Refusals refusals; // if not empty, there is no result
};

/// "sched-1f1b: p = 4, m = 8, v = 1", and options that are not defaults: ", group = 8"
std::string name_and_shape(const ScheduleSource& source);

/// A picture, unless it is too large to be readable.
ScheduleDrawing svg(const draw::Picture& picture);

ScheduleDrawing draw(const DrawingRequest& request, const ScheduleSource& source, const VerifiedSchedule& verified);

} // namespace triax::app
