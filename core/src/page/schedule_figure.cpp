// SPDX-License-Identifier: Apache-2.0
#include "page/schedule_figure.hpp"

#include <charconv>
#include <string_view>

#include "draw/svg.hpp"
#include "triax/text.hpp"

namespace triax::page {

std::optional<Figure> schedule_figure(const std::string& title, const draw::Picture& picture) {
  if (!draw::svg_support(picture).empty()) return {};
  constexpr std::string_view kBegin = "<svg ";
  std::string svg = draw::schedule_svg(picture);
  double width = 0; // of the picture
  const std::size_t digits = svg.find("width=\"") + std::string_view("width=\"").size();
  std::from_chars(svg.data() + digits, svg.data() + svg.size(), width);
  // A narrower window makes it a quarter smaller; below that it scrolls, because its numbers must be readable.
  svg.insert(kBegin.size(), text("class=\"schedule\" style=\"min-width:{}px\" ", draw::svg_number(0.75 * width)));
  return Figure{title, std::move(svg), {}, {}, true};
}

std::string schedule_style() {
  const auto rule = [](std::string_view selector, std::string_view property, std::string_view variable) {
    return text(".schedule {} ", selector) + "{ " + text("{}: var(--{}); ", property, variable) + "}\n";
  };
  return rule("> rect[width=\"100%\"]", "fill", "paper") +
         rule(text("text[fill=\"{}\"]", draw::kTextColour), "fill", "ink") +
         rule(text("text[fill=\"{}\"]", draw::kSecondaryTextColour), "fill", "quiet") +
         rule(text("g[stroke=\"{}\"]", draw::kSecondaryTextColour), "stroke", "quiet") +
         rule(text("g[stroke=\"{}\"]", draw::kBackground), "stroke", "paper") +
         rule(text("rect[fill=\"{}\"]", draw::hex(draw::kIdle)), "fill", "bubble");
}

} // namespace triax::page
