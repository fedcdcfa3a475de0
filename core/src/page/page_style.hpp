// SPDX-License-Identifier: Apache-2.0
// The parts of every page: colours, layout, patterns of bars, and the script that shows values under the pointer.
//
// Colours of series are those of Okabe and Ito (Color Universal Design, 2008), which readers with a colour vision
// deficiency distinguish. Each series also has its own dashes, marker or pattern, for prints without colours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace triax::page {

/// Series with numbers that differ by this have the same colour, and different dashes.
inline constexpr std::size_t kSeriesColours = 7;

/// "series-2 dash-3": classes of the lines of a series.
std::string line_classes(std::size_t series);
/// "series-2": of marks and areas.
std::string colour_class(std::size_t series);
/// The shape of a mark: it differs between series with different numbers up to 4. SVG markup.
std::string mark_svg(std::size_t series, double x, double y, std::string_view tooltip = {});
/// A bar with the pattern of its series.
std::string bar_svg(std::size_t series, double x, double y, double width, double height, std::string_view tooltip = {});

extern const std::string_view kPageHead, kPageStyle, kPagePatterns, kPageScript;

} // namespace triax::page
