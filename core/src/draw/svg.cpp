// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "triax/error.hpp"

namespace triax::draw {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

/// Length of the UTF-8 character at `at`; 0 if it is invalid.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return lead >= 0x20 || lead == '\n' || lead == '\t' ? 1 : 0;
  const std::size_t length = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (lead >= 0xF5 || length == 0 || at + length > text.size()) return 0;
  for (std::size_t next = 1; next < length; ++next)
    if (byte(at + next) / 0x40 != 2) return 0;
  return length;
}

} // namespace

std::string svg_number(double value) {
  TRIAX_REQUIRE(std::isfinite(value), "{} is not a position in a picture", value);
  char digits[400];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 2);
  std::string out(digits, end);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string svg_escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_at(text, at);
    switch (text[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += length == 0 ? kReplacement : text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

void Svg::box(const Box& box, Shade fill, std::string_view tooltip) {
  out_ += text(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}")", svg_number(box.x), svg_number(box.y),
               svg_number(box.width), svg_number(box.height), hex(fill));
  out_ += tooltip.empty() ? "/>\n" : text("><title>{}</title></rect>\n", svg_escaped(tooltip));
}

void Svg::letters(double x, double y, std::string_view text, const Letters& letters) {
  out_ += triax::text(R"(<text x="{}" y="{}" font-size="{}" fill="{}")", svg_number(x), svg_number(y),
                      svg_number(letters.size), letters.fill);
  if (letters.anchor != Anchor::start)
    out_ += letters.anchor == Anchor::end ? R"( text-anchor="end")" : R"( text-anchor="middle")";
  if (letters.bold) out_ += R"( font-weight="bold")";
  out_ += '>' + svg_escaped(text) + "</text>\n";
}

void Svg::line(double x, double y, double to_x, double to_y) {
  out_ += text("<path d=\"M{} {}L{} {}\"/>\n", svg_number(x), svg_number(y), svg_number(to_x), svg_number(to_y));
}

void Svg::area(std::string_view d, Shade fill) {
  out_ += text("<path d=\"{}\" fill=\"{}\"/>\n", d, hex(fill));
}

void Svg::open(std::string_view attributes) {
  out_ += text("<g {}>\n", attributes);
}

std::string svg_page(double width, double height, std::string_view title, const Svg& content) {
  return text(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" viewBox="0 0 {} {}")",
              svg_number(width), svg_number(height), svg_number(width), svg_number(height)) +
         text(" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n", svg_escaped(title)) +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + content.elements() + "</svg>\n";
}

} // namespace triax::draw
