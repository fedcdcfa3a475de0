// SPDX-License-Identifier: Apache-2.0
// Where things stand in a picture of timelines: everything that depends on how many ranks, passes and digits there are.
//
// Threads: values and pure functions. Ownership: values. Blocking: never. Errors: Error at what extent() throws at.
#pragma once

#include <string>

#include "report/schedule_svg.hpp"

namespace triax::report {

/// Of all panels of a picture; lengths in pixels.
struct Scale {
  explicit Scale(const Picture& picture);

  double pixels(double time) const { return time * per_time_; }

  double width = 0;       // of the longest timeline
  double row = 0;         // height of a rank's boxes
  double strip = 0;       // height of the picture of what a rank has in flight
  double number = 0;      // letters in boxes
  double gap = 0;         // white between boxes that touch
  int most_in_flight = 1; // of any rank
  int labelled = 1;       // every how many ranks have their label
  double tick = 1;        // time between two ticks

  /// Of the microbatch's number in a box.
  bool fits(const std::string& number_text, double box_width) const;

 private:
  double per_time_ = 1;
};

} // namespace triax::report
