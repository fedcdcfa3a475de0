// SPDX-License-Identifier: Apache-2.0
// Timelines of schedules as an SVG picture, as in papers: a row per rank, boxes with microbatch numbers, and below them
// the microbatch chunks in flight of each rank. The file refers to no other file.
//
// Threads: pure functions. Errors: those of time_span(), and Error for pictures that svg_support() rejects.
#pragma once

#include <string>
#include <vector>

#include "schedule/timeline.hpp"
#include "triax/error.hpp"

namespace triax::draw {

struct Panel {
  std::string heading; // "measured"; may be empty
  schedule::Timeline timeline;
};

/// Panels are drawn below each other, each from the start of its first pass, with the same scale and unit.
struct Picture {
  std::string title, note; // the note is a second line; may be empty
  std::vector<Panel> panels;
};

/// Whether the picture is small enough to be readable.
Refusals svg_support(const Picture& picture);

std::string schedule_svg(const Picture& picture);

} // namespace triax::draw
