// SPDX-License-Identifier: Apache-2.0
// Colours of schedules: one per kind of pass, darkest for a rank's first chunk, so that chunks also differ in
// greyscale.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/rules.hpp"

namespace triax::draw {

struct Shade {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Shade&) const = default;
};

/// Colour of a pass of chunk `chunk` of the rank's `chunks` chunks. Other actions are grey.
Shade shade_of(schedule::Kind kind, int chunk, int chunks);
/// Whether white text is easier to read on it than black.
bool wants_white(Shade shade);

std::string hex(Shade shade);    // "#2f6db5"
int of_256_colours(Shade shade); // nearest colour of the 256-colour palette
inline constexpr Shade kIdle = {231, 234, 240};

/// For each stage, the number of its chunk on its rank: from 0, in ascending order of the rank's stages.
struct Chunks {
  explicit Chunks(const schedule::StageMap& stage_map);
  std::vector<int> of_stage;
  int max = 1; // the largest number of chunks of a rank
};

} // namespace triax::draw
