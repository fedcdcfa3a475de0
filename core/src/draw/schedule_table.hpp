// SPDX-License-Identifier: Apache-2.0
// A schedule as text, drawn as in papers: a row of boxes per rank over units of time.
//
//   time    0              5
//   rank 0 |F0|F1|     |B0   |  |B1   |
//   rank 1    |F0|B0   |F1|B1   |
//
// Threads: pure functions. Errors: Error unless the timeline's unit is passes.
#pragma once

#include <string>

#include "schedule/timeline.hpp"

namespace triax::draw {

struct TableStyle {
  bool colour = false;     // boxes have the colours of pictures
  int columns = 0;         // width of the terminal; 0: unlimited
  std::string folded = {}; // last line if the drawing was folded: how to print it unfolded
};

/// The drawing, and below it the idle time and the peak of microbatch chunks in flight of each rank. Boxes contain the
/// stage, unless stage and rank are the same number.
///
/// If the drawing is wider than `columns`, it is folded into blocks of time below each other, each with its ruler and
/// all ranks. A box that is cut ends with '>' and continues after '<'. If there are many blocks, those in the middle
/// are left out, and a line says which.
std::string schedule_table(const schedule::Timeline& timeline, const TableStyle& style = {});

} // namespace triax::draw
