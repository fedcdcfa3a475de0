// SPDX-License-Identifier: Apache-2.0
// Dimensions of a picture of timelines: everything that depends on the number of ranks, passes and digits.
//
// Threads: values and pure functions. Errors: those of time_span().
#pragma once

#include <string>

#include "draw/schedule_svg.hpp"

namespace triax::draw {

/// For all panels of a picture; lengths in pixels.
struct Scale {
  explicit Scale(const Picture& picture);

  double pixels(double time) const { return time * per_time_; }

  double width = 0;      // width of the longest timeline
  double row = 0;        // height of a rank's boxes
  double strip = 0;      // height of a rank's strip of microbatch chunks in flight
  double number = 0;     // font size in boxes
  double gap = 0;        // between adjacent boxes
  int max_in_flight = 1; // the largest number of any rank
  int labelled = 1;      // every labelled-th rank has a label
  double tick = 1;       // time between two ticks

  /// Whether the number of a microbatch fits in a box.
  bool fits(const std::string& number_text, double box_width) const;

 private:
  double per_time_ = 1;
};

} // namespace triax::draw
