// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace triax::draw {

namespace {

using schedule::Span;

constexpr double kDigit = 0.63;                      // width of a digit relative to the font size
constexpr double kMin = 7, kMax = 11;                // font sizes in boxes
constexpr double kPage = 1000, kWidest = 3000;       // width of a page; widest picture
constexpr double kNarrowest = 480;                   // width for the title
constexpr double kEasyPass = 26, kReadablePass = 12; // width of a short pass

/// The shortest mean time of a kind of pass. One short pass of a measured timeline is not representative.
double short_pass(const Picture& picture) {
  std::array<double, schedule::kKinds> sum{}, count{};
  for (const Panel& panel : picture.panels)
    for (const std::vector<Span>& row : panel.timeline.rows)
      for (const Span& span : row) {
        if (!schedule::runs_layers(span.kind) || span.length() <= 0) continue;
        sum[static_cast<std::size_t>(span.kind)] += span.length();
        count[static_cast<std::size_t>(span.kind)] += 1;
      }
  double out = std::numeric_limits<double>::max();
  for (std::size_t kind = 0; kind < sum.size(); ++kind)
    if (count[kind] > 0) out = std::min(out, sum[kind] / count[kind]);
  return out;
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `least`.
double round_number(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= least * (1 - 1e-9)) return step * power;
  return 10 * power;
}

int digits(int number) {
  return static_cast<int>(std::to_string(number).size());
}

} // namespace

Scale::Scale(const Picture& picture) {
  double length = 0;
  int ranks = 1, microbatches = 1;
  bool units = true;
  for (const Panel& panel : picture.panels) {
    length = std::max(length, schedule::time_span(panel.timeline).length());
    ranks = std::max(ranks, static_cast<int>(panel.timeline.rows.size()));
    microbatches = std::max(microbatches, panel.timeline.shape.microbatches);
    units = units && panel.timeline.unit == schedule::Timeline::Unit::pass;
    for (const std::vector<Span>& spans : panel.timeline.rows)
      max_in_flight = std::max(max_in_flight, schedule::peak_of(schedule::in_flight(spans)));
  }
  const double passes = std::max(1.0, length / std::min(length, short_pass(picture)));
  width = std::clamp(passes * std::clamp(kPage / passes, kReadablePass, kEasyPass), kNarrowest, kWidest);
  per_time_ = width / length;
  const double pass = width / passes;
  row = std::clamp(760.0 / ranks, 8.0, 24.0);
  strip = std::clamp(480.0 / ranks, 8.0, 26.0);
  number = std::clamp((pass - 4) / (kDigit * digits(microbatches - 1)), kMin, kMax);
  number = std::min(number, row - 2);
  gap = pass >= 6 ? 1 : pass >= 2.5 ? 0.5 : 0;
  labelled = static_cast<int>(std::ceil(12.0 / row));
  tick = std::max(round_number(length * 64 / width), units ? 1.0 : 0.0);
}

bool Scale::fits(const std::string& number_text, double box_width) const {
  return number >= kMin - 1e-9 && kDigit * number * static_cast<double>(number_text.size()) <= box_width - 2.5;
}

} // namespace triax::draw
