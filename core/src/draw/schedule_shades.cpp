// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_shades.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace triax::draw {

namespace {

struct Range {
  Shade dark, light; // for the first and the last chunk of a rank
};

/// Blue for forward, green for backward, as in the figures of SC'21; amber for W, on which no pass depends; violet for
/// R.
Range range_of(schedule::Kind kind) {
  switch (kind) {
    case schedule::Kind::forward:
      return {{47, 105, 176}, {173, 205, 240}};
    case schedule::Kind::backward:
      return {{46, 135, 85}, {168, 220, 184}};
    case schedule::Kind::backward_input:
      return {{20, 140, 140}, {160, 221, 217}};
    case schedule::Kind::backward_weight:
      return {{232, 168, 56}, {252, 224, 160}};
    case schedule::Kind::recompute:
      return {{126, 87, 166}, {210, 190, 230}};
    default:
      return {{138, 143, 152}, {138, 143, 152}};
  }
}

std::uint8_t between(std::uint8_t dark, std::uint8_t light, double share) {
  return static_cast<std::uint8_t>(std::lround(dark + share * (light - dark)));
}

constexpr int kCube[] = {0, 95, 135, 175, 215, 255}; // colour cube of xterm

int nearest(int value) {
  const auto closer = [value](int one, int other) { return std::abs(one - value) < std::abs(other - value); };
  return static_cast<int>(std::ranges::min_element(kCube, closer) - std::begin(kCube));
}

} // namespace

Shade shade_of(schedule::Kind kind, int chunk, int chunks) {
  const auto& [dark, light] = range_of(kind);
  const double share = chunks > 1 ? static_cast<double>(chunk) / (chunks - 1) : 0;
  return {between(dark.red, light.red, share), between(dark.green, light.green, share),
          between(dark.blue, light.blue, share)};
}

bool wants_white(Shade shade) {
  return 0.299 * shade.red + 0.587 * shade.green + 0.114 * shade.blue < 140;
}

std::string hex(Shade shade) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out = "#";
  for (const std::uint8_t part : {shade.red, shade.green, shade.blue}) {
    out += kDigits[part / 16];
    out += kDigits[part % 16];
  }
  return out;
}

int of_256_colours(Shade shade) {
  return 16 + 36 * nearest(shade.red) + 6 * nearest(shade.green) + nearest(shade.blue);
}

Chunks::Chunks(const schedule::StageMap& stage_map) {
  std::map<int, int> of_rank;
  for (int stage = 0; stage < stage_map.stages(); ++stage) {
    int& next = of_rank[stage_map.rank_of(stage)];
    of_stage.push_back(next++);
    max = std::max(max, next);
  }
}

} // namespace triax::draw
