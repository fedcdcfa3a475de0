// SPDX-License-Identifier: Apache-2.0
// Draws the measured step of a run above the simulated one, with an analysis of the difference.
//
// Blocking: reads the timelines in the run's folder. Errors: Error if they are missing or of another run. If the
// picture is too large, the result says so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "schedule/schedule_drawing.hpp"

namespace triax::app {

/// Draws the pipeline ranks with the data and tensor coordinates of rank 0. `format`: table, svg, json or trace.
/// `source` must be a run.
ScheduleDrawing draw_measured(const std::string& format, const ScheduleSource& source,
                              const VerifiedSchedule& verified);

/// The same comparison, for a page.
struct MeasuredPicture {
  draw::Picture picture;                           // measured and simulated
  std::vector<std::vector<std::string>> breakdown; // of the ranks; the first row is the heading
};
/// `run`: its TOML, such as resolved.toml in the run's folder. Throws Error also if its schedule cannot be created
/// here.
MeasuredPicture measured_picture(const std::filesystem::path& run);

} // namespace triax::app
