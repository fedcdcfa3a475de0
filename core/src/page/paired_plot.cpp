// SPDX-License-Identifier: Apache-2.0
#include "page/paired_plot.hpp"

#include <algorithm>
#include <cmath>

#include "base/scaled_text.hpp"
#include "draw/svg.hpp"
#include "page/chart_frame.hpp"
#include "page/page_style.hpp"
#include "triax/text.hpp"

namespace triax::page {

namespace {

using draw::svg_number;

bool can_be_drawn(double ratio) {
  return std::isfinite(ratio) && ratio > 0;
}

std::string across(const ChartFrame& frame, double value, const char* name) {
  return text("<path class=\"{}\" d=\"{}H{}\"/>\n", name, path_to('M', frame.left(), frame.y(value)),
              svg_number(frame.right()));
}

} // namespace

std::optional<Figure> paired_plot(const PairedPlot& plot) {
  std::vector<double> shown = {1, plot.mean, plot.low, plot.high};
  std::ranges::copy_if(plot.ratios, std::back_inserter(shown), can_be_drawn);
  if (shown.size() == 4 || !std::ranges::all_of(shown, can_be_drawn)) return {};
  const auto [least, largest] = std::ranges::minmax(shown);
  const double margin = (largest - least) * 0.08;
  const ChartFrame frame(
      {440, 225},
      make_axis(
          {.min = 0.5, .max = static_cast<double>(plot.ratios.size()) + 0.5, .is_integer = true, .max_ticks = 10}),
      make_axis({.min = least - margin, .max = largest + margin}), "round", "time of B / time of A");
  std::string content =
      text("<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", svg_number(frame.left()),
           svg_number(frame.y(plot.high)), svg_number(frame.right() - frame.left()),
           svg_number(frame.y(plot.low) - frame.y(plot.high)));
  content += across(frame, plot.mean, "mean") + across(frame, 1, "reference");
  for (std::size_t at = 0; at < plot.ratios.size(); ++at)
    if (can_be_drawn(plot.ratios[at]))
      content += mark_svg(0, frame.x(static_cast<double>(at + 1)), frame.y(plot.ratios[at]),
                          text("round {}: {}", at + 1, decimals_text(plot.ratios[at], 4)));
  const auto ratio = [](double value) { return decimals_text(value, 3); };
  const std::vector<LegendEntry> legend = {{mark_svg(0, 14, 6), "ratio of a round"},
                                           {"<path class=\"mean\" d=\"M1 6H27\"/>", text("mean {}", ratio(plot.mean))},
                                           {"<rect class=\"band\" x=\"1\" y=\"0\" width=\"26\" height=\"12\"/>",
                                            text("95 % interval {} to {}", ratio(plot.low), ratio(plot.high))},
                                           {"<path class=\"reference\" d=\"M1 6H27\"/>", "equal times"}};
  const std::string description =
      text("{}: {} rounds from {} to {}, mean {}, 95 % interval {} to {}", plot.title, plot.ratios.size(),
           ratio(*std::ranges::min_element(plot.ratios)), ratio(*std::ranges::max_element(plot.ratios)),
           ratio(plot.mean), ratio(plot.low), ratio(plot.high));
  return Figure{plot.title, frame.svg(description, content), plot.caption, legend, false};
}

} // namespace triax::page
