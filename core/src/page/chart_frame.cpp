// SPDX-License-Identifier: Apache-2.0
#include "page/chart_frame.hpp"

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "draw/svg.hpp"
#include "page/html_text.hpp"
#include "triax/text.hpp"

namespace triax::page {

using draw::svg_number;

std::string path_to(char command, double x, double y) {
  return text("{}{} {}", command, svg_number(x), svg_number(y));
}

std::string text_svg(double x, double y, const char* attributes, const std::string& text) {
  return triax::text("<text x=\"{}\" y=\"{}\" {}>{}</text>\n", svg_number(x), svg_number(y), attributes,
                     html_escaped(text));
}

double text_width(const std::string& text) {
  double out = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(rest), 1);
    const bool narrow = std::string_view("fijlt,':. ").find(rest.front()) != std::string_view::npos;
    out += length > 2 ? 11 : narrow ? 3.7 : 6.7;
    rest.remove_prefix(length);
  }
  return out;
}

ChartFrame::ChartFrame(const ChartSize& size, ChartAxis x, ChartAxis y, std::string x_name, std::string y_name)
    : size_(size), x_(std::move(x)), y_(std::move(y)), x_name_(std::move(x_name)), y_name_(std::move(y_name)) {
  double widest = 0;
  for (const double tick : y_.ticks) widest = std::max(widest, text_width(y_.label(tick)));
  left_ = widest + 12;
  right_ = size.width - 18; // half of a tick label
  top_ = y_name_.empty() ? 8 : 22;
  bottom_ = size.height - (x_name_.empty() ? 22 : 36);
}

std::string ChartFrame::svg(const std::string& description, const std::string& content) const {
  std::string grid, labels;
  for (const double tick : y_.ticks) {
    grid += path_to('M', left_, y(tick)) + text("H{}", svg_number(right_));
    labels += text_svg(left_ - 6, y(tick) + 4, "class=\"tick\" text-anchor=\"end\"", y_.label(tick));
  }
  std::string marks = path_to('M', left_, top_) + text("V{}H{}", svg_number(bottom_), svg_number(right_));
  for (const double tick : x_.ticks) {
    marks += path_to('M', x(tick), bottom_) + "v4";
    labels += text_svg(x(tick), bottom_ + 16, "class=\"tick\" text-anchor=\"middle\"", x_.label(tick));
  }
  if (!y_name_.empty()) labels += text_svg(2, 12, "class=\"tick\"", y_name_);
  if (!x_name_.empty())
    labels += text_svg((left_ + right_) / 2, size_.height - 5, "class=\"tick\" text-anchor=\"middle\"", x_name_);
  const auto range = [](double from, double to, double begin, double end) {
    return text("{} {} {} {}", from, to, svg_number(begin), svg_number(end));
  };
  return text("<svg{} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" ",
              size_.width > 600 ? " class=\"long\"" : "", svg_number(size_.width), svg_number(size_.height),
              html_escaped(description)) +
         text("data-x=\"{}\" data-y=\"{}\" data-name=\"{}\"{}>\n", range(x_.from, x_.to, left_, right_),
              range(y_.from, y_.to, bottom_, top_), html_escaped(x_name_), y_.is_log ? " data-log=\"\"" : "") +
         text("<path class=\"grid\" d=\"{}\"/>\n<path class=\"frame\" d=\"{}\"/>\n", grid, marks) + labels + content +
         "</svg>\n";
}

} // namespace triax::page
