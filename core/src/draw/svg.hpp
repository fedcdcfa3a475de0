// SPDX-License-Identifier: Apache-2.0
// SVG elements as text: numbers with at most two decimals, escaped strings, no references to other files.
//
// Threads: one thread at a time per object. Errors: Error for a number that is not finite.
#pragma once

#include <string>
#include <string_view>

#include "draw/schedule_shades.hpp"

namespace triax::draw {

/// At most two decimals; the same bytes on every machine.
std::string svg_number(double value);

/// Colours of text, of secondary text and of the background.
inline constexpr const char *kTextColour = "#333740", *kSecondaryTextColour = "#6b7280", *kBackground = "#ffffff";

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

class Svg {
 public:
  enum class Anchor { start, middle, end };
  struct TextStyle {
    double size = 11;
    Anchor anchor = Anchor::start;
    bool bold = false;
    std::string fill = kTextColour;
  };

  /// `tooltip` may be empty.
  void box(const Box& box, Shade fill, std::string_view tooltip = {});
  /// `y`: position of the baseline.
  void text(double x, double y, std::string_view words, const TextStyle& style);
  void line(double x, double y, double to_x, double to_y);
  /// `d`: an SVG path.
  void path(std::string_view d, Shade fill);
  /// Opens a group: elements until close() have these attributes unless they have their own.
  void open(std::string_view attributes);
  void close() { out_ += "</g>\n"; }

  const std::string& elements() const { return out_; }

 private:
  std::string out_;
};

/// A whole file. `title`: description for screen readers.
std::string svg_page(double width, double height, std::string_view title, const Svg& content);

} // namespace triax::draw
