// SPDX-License-Identifier: Apache-2.0
// A report as one HTML file that needs no other file and no network: sections with text, tables and figures.
//
// Light and dark colours follow the reader's settings; on paper, the page is white. A script shows the values of a
// chart under the pointer; without it the page is complete.
//
// Threads: one per object. Ownership: values. Blocking: none. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triax::page {

/// Columns in which every cell is a number are aligned to the right; so is a cell "-", which stands for no value.
struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::string caption = {}; // may be empty
};

struct LegendEntry {
  std::string sample; // SVG elements in a field of 28 x 12; markup
  std::string name;   // text
};

/// A picture that fits in a page: its colours are variables of the page.
struct Figure {
  std::string title;   // text
  std::string svg;     // markup
  std::string caption; // text; may be empty
  std::vector<LegendEntry> legend = {};
  bool is_wide = false; // takes the whole width of the page
};

/// All arguments are text, which is escaped here.
class Page {
 public:
  Page(std::string title, std::string subtitle);

  /// Text that stands out, such as a verdict.
  void result(std::string_view text);
  /// Begins a section; the page begins with a list of all sections.
  void section(std::string_view heading);
  void paragraph(std::string_view text);
  /// A problem that the reader must know, such as a file that cannot be read.
  void note(std::string_view text);
  void pairs(const std::vector<std::pair<std::string, std::string>>& of);
  void table(const Table& table);
  /// Narrow figures that follow each other stand side by side where the window is wide enough.
  void figure(const Figure& figure);

  std::string html() const;

 private:
  void open_figures(bool open);

  std::string title_, subtitle_, body_;
  std::vector<std::string> headings_; // escaped
  bool in_figures_ = false, in_section_ = false;
};

} // namespace triax::page
