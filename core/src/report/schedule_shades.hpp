// SPDX-License-Identifier: Apache-2.0
// The colours in which schedules are drawn: one for each kind of pass, darkest for a rank's first chunk, so that they
// differ in grey as well.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/rules.hpp"

namespace triax::report {

struct Shade {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Shade&) const = default;
};

/// `chunk` of the `chunks` that a rank has. What is no pass has a grey.
Shade shade_of(schedule::Kind kind, int chunk, int chunks);
/// Whether white is read better on it than black.
bool wants_white(Shade shade);

std::string hex(Shade shade);    // "#2f6db5"
int of_256_colours(Shade shade); // the nearest of a terminal's colour cube
inline constexpr Shade kBubble = {231, 234, 240};

/// Of each stage, which of its rank's chunks it is: from 0, in ascending order of the rank's stages.
struct Chunks {
  explicit Chunks(const schedule::StageMap& stage_map);
  std::vector<int> of_stage;
  int most = 1; // of any rank
};

} // namespace triax::report
