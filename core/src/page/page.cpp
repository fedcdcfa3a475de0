// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "page/html_text.hpp"
#include "page/page_style.hpp"
#include "page/schedule_figure.hpp"
#include "triax/text.hpp"

namespace triax::page {

namespace {

bool is_number(const std::string& cell) {
  if (cell == "-") return true;
  const std::size_t first = cell.starts_with('-') || cell.starts_with('+') ? 1 : 0;
  const bool digit = cell.size() > first && std::isdigit(static_cast<unsigned char>(cell[first])) != 0;
  return digit && std::ranges::count(cell, '.') < 2; // 0.1.0 is a version
}

/// For each column of the table, the attribute of its cells: numbers, long texts, which are broken, or short ones.
std::vector<std::string> classes_of(const Table& table) {
  constexpr std::size_t kMaxUnbroken = 30; // bytes
  std::vector<std::string> out;
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    const auto all = [&](const auto& is) {
      return std::ranges::all_of(table.rows, [&](const auto& row) { return column >= row.size() || is(row[column]); });
    };
    const bool numbers = !table.rows.empty() && all(is_number);
    const bool is_short = all([](const std::string& cell) { return cell.size() <= kMaxUnbroken; });
    out.emplace_back(!is_short ? " class=\"text\"" : numbers ? " class=\"number\"" : "");
  }
  return out;
}

std::string legend_html(const std::vector<LegendEntry>& legend) {
  if (legend.empty()) return {};
  std::string out = "<ul class=\"legend\">\n";
  for (const LegendEntry& entry : legend)
    out += text(
        "<li><svg width=\"28\" height=\"12\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">{}</svg>"
        "<span>{}</span></li>\n",
        entry.sample, html_escaped(entry.name));
  return out + "</ul>\n";
}

} // namespace

Page::Page(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::open_figures(bool open) {
  if (open != in_figures_) body_ += open ? "<div class=\"figures\">\n" : "</div>\n";
  in_figures_ = open;
}

void Page::result(std::string_view text) {
  open_figures(false);
  body_ += triax::text("<p class=\"result\">{}</p>\n", html_escaped(text));
}

void Page::section(std::string_view heading) {
  open_figures(false);
  headings_.push_back(html_escaped(heading));
  body_ += triax::text("{}<section id=\"section-{}\">\n<h2>{}</h2>\n", in_section_ ? "</section>\n" : "",
                       headings_.size(), headings_.back());
  in_section_ = true;
}

void Page::paragraph(std::string_view text) {
  open_figures(false);
  body_ += triax::text("<p>{}</p>\n", html_escaped(text));
}

void Page::note(std::string_view text) {
  open_figures(false);
  body_ += triax::text("<p class=\"note\"><b>Note:</b> {}</p>\n", html_escaped(text));
}

void Page::pairs(const std::vector<std::pair<std::string, std::string>>& of) {
  open_figures(false);
  body_ += "<dl>\n";
  for (const auto& [name, value] : of)
    body_ += text("<dt>{}</dt><dd>{}</dd>\n", html_escaped(name), html_escaped(value));
  body_ += "</dl>\n";
}

void Page::table(const Table& table) {
  open_figures(false);
  const std::vector<std::string> classes = classes_of(table);
  if (!table.caption.empty()) body_ += text("<p class=\"above\">{}</p>\n", html_escaped(table.caption));
  body_ += "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  body_ += "<thead><tr>";
  for (std::size_t at = 0; at < table.header.size(); ++at)
    body_ += text("<th scope=\"col\"{}>{}</th>", classes[at], html_escaped(table.header[at]));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    body_ += "<tr>";
    for (std::size_t at = 0; at < row.size(); ++at) {
      const std::string attribute = at < classes.size() ? classes[at] : "";
      body_ += at == 0 ? text("<th scope=\"row\"{}>{}</th>", attribute, html_escaped(row[at]))
                       : text("<td{}>{}</td>", attribute, html_escaped(row[at]));
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void Page::figure(const Figure& figure) {
  open_figures(true);
  body_ += text("<figure{}>\n<figcaption>{}<output class=\"readout\"></output></figcaption>\n{}",
                figure.is_wide ? " class=\"wide\"" : "", html_escaped(figure.title), legend_html(figure.legend));
  body_ += "<div class=\"scroll\" tabindex=\"0\">\n" + figure.svg + "</div>\n";
  if (!figure.caption.empty()) body_ += text("<p class=\"caption\">{}</p>\n", html_escaped(figure.caption));
  body_ += "</figure>\n";
}

std::string Page::html() const {
  std::string out = text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n{}"
      "<style>\n{}{}</style>\n</head>\n<body>\n{}",
      html_escaped(title_), kPageHead, kPageStyle, schedule_style(), kPagePatterns);
  out += text("<header>\n<h1>{}</h1>\n", html_escaped(title_));
  if (!subtitle_.empty()) out += text("<p class=\"subtitle\">{}</p>\n", html_escaped(subtitle_));
  if (headings_.size() > 1) {
    out += "<nav aria-label=\"Sections\">\n";
    for (std::size_t at = 0; at < headings_.size(); ++at)
      out += text("<a href=\"#section-{}\">{}</a>\n", at + 1, headings_[at]);
    out += "</nav>\n";
  }
  out += "</header>\n<main>\n" + body_ + (in_figures_ ? "</div>\n" : "") + (in_section_ ? "</section>\n" : "");
  return out + text("</main>\n<script>\n{}</script>\n</body>\n</html>\n", kPageScript);
}

} // namespace triax::page
