// SPDX-License-Identifier: Apache-2.0
// Timelines of schedules as a picture, in the manner of the papers' figures: a row per rank, boxes with the number of
// the microbatch, and below them what each rank has in flight. A file of SVG that needs no other.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error at what extent() throws at, and at
// pictures that svg_support() refuses.
#pragma once

#include <string>
#include <vector>

#include "schedule/timeline.hpp"
#include "triax/error.hpp"

namespace triax::report {

struct Panel {
  std::string heading; // "measured"; may be empty
  schedule::Timeline timeline;
};

/// Panels stand above each other, each from its own first start on, all in one scale; they have one unit.
struct Picture {
  std::string title, note; // the note is a second line; may be empty
  std::vector<Panel> panels;
};

/// Whether it can still be read.
Support svg_support(const Picture& picture);

std::string schedule_svg(const Picture& picture);

} // namespace triax::report
