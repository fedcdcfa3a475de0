// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/xml_text.hpp"
#include "triax/error.hpp"

namespace triax::draw {

std::string svg_number(double value) {
  TRIAX_REQUIRE(std::isfinite(value), "{} is not a position in a picture", value);
  char digits[400];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 2);
  std::string out(digits, end);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

void Svg::box(const Box& box, Shade fill, std::string_view tooltip) {
  out_ += triax::text(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}")", svg_number(box.x), svg_number(box.y),
                      svg_number(box.width), svg_number(box.height), hex(fill));
  out_ += tooltip.empty() ? "/>\n" : triax::text("><title>{}</title></rect>\n", xml_escaped(tooltip));
}

void Svg::text(double x, double y, std::string_view words, const TextStyle& style) {
  out_ += triax::text(R"(<text x="{}" y="{}" font-size="{}" fill="{}")", svg_number(x), svg_number(y),
                      svg_number(style.size), style.fill);
  if (style.anchor != Anchor::start)
    out_ += style.anchor == Anchor::end ? R"( text-anchor="end")" : R"( text-anchor="middle")";
  if (style.bold) out_ += R"( font-weight="bold")";
  out_ += '>' + xml_escaped(words) + "</text>\n";
}

void Svg::line(double x, double y, double to_x, double to_y) {
  out_ += triax::text("<path d=\"M{} {}L{} {}\"/>\n", svg_number(x), svg_number(y), svg_number(to_x), svg_number(to_y));
}

void Svg::path(std::string_view d, Shade fill) {
  out_ += triax::text("<path d=\"{}\" fill=\"{}\"/>\n", d, hex(fill));
}

void Svg::open(std::string_view attributes) {
  out_ += triax::text("<g {}>\n", attributes);
}

std::string svg_page(double width, double height, std::string_view title, const Svg& content) {
  return text(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" viewBox="0 0 {} {}")",
              svg_number(width), svg_number(height), svg_number(width), svg_number(height)) +
         text(" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n", xml_escaped(title)) +
         text("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n", kBackground) + content.elements() + "</svg>\n";
}

} // namespace triax::draw
