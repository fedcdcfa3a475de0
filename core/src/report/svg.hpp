// SPDX-License-Identifier: Apache-2.0
// SVG elements as text: numbers of two decimals, texts escaped, nothing that needs another file.
//
// Threads: one per object. Ownership: owns what was written. Blocking: never. Errors: Error at a number that is none.
#pragma once

#include <string>
#include <string_view>

#include "report/schedule_shades.hpp"

namespace triax::report {

/// With at most two decimals, and the same bytes everywhere.
std::string svg_number(double value);
/// For texts and attributes; what XML cannot hold becomes U+FFFD.
std::string svg_escaped(std::string_view text);

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

class Svg {
 public:
  enum class Anchor { start, middle, end };
  struct Letters {
    double size = 11;
    Anchor anchor = Anchor::start;
    bool bold = false;
    std::string fill = "#333740";
  };

  /// What is shown where a pointer rests on the box: `told`, unless it is empty.
  void box(const Box& box, Shade fill, std::string_view told = {});
  /// `y`: of the base line.
  void letters(double x, double y, std::string_view text, const Letters& letters);
  void line(double x, double y, double to_x, double to_y);
  /// `d`: an SVG path.
  void area(std::string_view d, Shade fill);
  /// What follows, until close(), has these attributes unless it has its own.
  void open(std::string_view attributes);
  void close() { out_ += "</g>\n"; }

  const std::string& elements() const { return out_; }

 private:
  std::string out_;
};

/// A whole file. `title` is what readers that see no pictures are told.
std::string svg_page(double width, double height, std::string_view title, const Svg& content);

} // namespace triax::report
