// SPDX-License-Identifier: Apache-2.0
// A schedule as text, the way papers draw one: a row of boxes per rank over units of time.
//
//   time    0              5
//   rank 0 |F0|F1|     |B0   |  |B1   |
//   rank 1    |F0|B0   |F1|B1   |
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error unless the timeline counts passes.
#pragma once

#include <string>

#include "schedule/timeline.hpp"

namespace triax::report {

struct TableStyle {
  bool colour = false;     // boxes have the colours of pictures
  int columns = 0;         // of the terminal that the drawing has to fit; 0: the drawing is as wide as it is long
  std::string folded = {}; // a last line where the drawing did not fit: how to get it whole
};

/// The drawing, and below it the idle time and the peak of microbatches in flight of each rank. The stage stands in
/// the boxes unless stage and rank are the same number.
///
/// A drawing that is wider than `columns` is folded into blocks of time, one below the other, each with its own ruler
/// and all ranks. A box that is cut ends with '>' and continues after '<'. Of many blocks those in the middle are left
/// out, and a line says which.
std::string schedule_table(const schedule::Timeline& timeline, const TableStyle& style = {});

} // namespace triax::report
