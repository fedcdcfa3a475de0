// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_table.hpp"

#include <algorithm>
#include <cmath>

#include "draw/schedule_shades.hpp"
#include "os/terminal.hpp"
#include "triax/error.hpp"

namespace triax::draw {

namespace {

using schedule::Span;
using schedule::Timeline;
using Row = std::vector<Span>;

constexpr std::int64_t kRulerUnits = 5; // between two numbers of the ruler

constexpr std::int64_t kMaxBlocks = 4; // in a folded drawing; the last one is the end of the step

/// The units of time in one block.
struct Window {
  std::int64_t from = 0, to = 0;
};

/// Times are whole numbers of units: an F, I, W or R takes one.
std::int64_t units(double time) {
  return std::llround(time);
}

bool stage_is_rank(const schedule::StageMap& stage_map) {
  for (int stage = 0; stage < stage_map.stages(); ++stage)
    if (stage_map.rank_of(stage) != stage) return false;
  return true;
}

/// Text with its number of columns, not counting escape sequences.
class Line {
 public:
  explicit Line(std::string text) : text_(std::move(text)), columns_(text_.size()) {}
  void pad_to(std::size_t columns) {
    text_.append(columns - columns_, ' ');
    columns_ = columns;
  }
  void replace_last(char letter) { text_.back() = letter; }
  void add(const std::string& text) {
    text_ += text;
    columns_ += text.size();
  }
  void add_control(const std::string& bytes) { text_ += bytes; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t columns_;
};

class Drawing {
 public:
  Drawing(const Timeline& timeline, bool colour)
      : with_stage_(!stage_is_rank(timeline.stage_map)), colour_(colour), chunks_(timeline.stage_map) {
    for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) {
      label_width_ = std::max(label_width_, label(rank).size());
      for (const Span& span : timeline.rows[rank]) unit_width_ = std::max(unit_width_, box(span).size() + 1);
    }
  }

  std::string block(const Timeline& timeline, Window window) const {
    std::string out = ruler(window);
    for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) out += row(rank, timeline.rows[rank], window);
    return out;
  }

  /// Units of time that fit in `columns`, rounded down to the ruler's steps if possible.
  std::int64_t units_within(std::size_t columns) const {
    const std::size_t used = label_width_ + 1;
    const auto fit = static_cast<std::int64_t>(columns > used ? (columns - used) / unit_width_ : 0);
    return fit < kRulerUnits ? std::max<std::int64_t>(fit, 1) : fit / kRulerUnits * kRulerUnits;
  }
  bool fits(std::int64_t length, std::size_t columns) const { return column(length) <= columns; }

 private:
  std::string ruler(Window window) const {
    std::string out = "time";
    for (std::int64_t at = window.from; at < window.to; at += kRulerUnits) {
      out.resize(column(at - window.from), ' ');
      out += std::to_string(at);
    }
    return out + '\n';
  }

  /// A box shares the bar of the box directly before it; otherwise it starts with its own.
  std::string row(std::size_t rank, const Row& spans, Window window) const {
    Line out(label(rank));
    std::int64_t reached = -1;
    for (const Span& span : spans) {
      const std::int64_t start = std::max(units(span.start), window.from), end = std::min(units(span.end), window.to);
      if (start >= end) continue;
      const bool begins = start == units(span.start), ends = end == units(span.end);
      out.pad_to(column(start - window.from));
      if (start != reached) out.replace_last(begins ? '|' : '<');
      if (colour_) out.add_control(colours(span));
      if (begins) out.add(box(span));
      out.pad_to(column(end - window.from) - 1);
      if (colour_) out.add_control("\x1b[0m");
      out.add(ends ? "|" : ">");
      reached = end;
    }
    return out.text() + '\n';
  }

  static std::string label(std::size_t rank) { return text("rank {} ", rank); }
  std::string box(const Span& span) const {
    return schedule::action_text(span.kind, with_stage_ ? span.stage : 0, span.microbatch).substr(with_stage_ ? 0 : 1);
  }
  std::string colours(const Span& span) const {
    const Shade shade = shade_of(span.kind, chunks_.of_stage.at(static_cast<std::size_t>(span.stage)), chunks_.max);
    return text("\x1b[38;5;{};48;5;{}m", wants_white(shade) ? 231 : 16, of_256_colours(shade));
  }
  /// Column of the first character of a box that starts at this time.
  std::size_t column(std::int64_t at) const { return label_width_ + 1 + static_cast<std::size_t>(at) * unit_width_; }

  bool with_stage_, colour_;
  Chunks chunks_;
  std::size_t unit_width_ = 0, label_width_ = 0;
};

std::int64_t busy_units(const Row& row) {
  double busy = 0;
  for (const Span& span : row) busy += span.length();
  return units(busy);
}

/// The blocks of a folded drawing.
std::string folded(const Timeline& timeline, const Drawing& drawing, std::int64_t length, std::int64_t per_block) {
  const std::int64_t blocks = (length + per_block - 1) / per_block;
  std::string out;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (block == kMaxBlocks - 1 && blocks > kMaxBlocks) {
      out += text("time {} to {} is left out\n", block * per_block, (blocks - 1) * per_block);
      block = blocks - 1;
    }
    out += drawing.block(timeline, {block * per_block, std::min((block + 1) * per_block, length)});
  }
  return out;
}

} // namespace

std::string schedule_table(const Timeline& timeline, const TableStyle& style) {
  TRIAX_REQUIRE(timeline.unit == Timeline::Unit::pass, "a table counts units of time");
  const std::int64_t length = units(schedule::time_span(timeline).last);
  const auto columns = static_cast<std::size_t>(style.columns);
  const Drawing drawing(timeline, style.colour);
  const bool whole = columns == 0 || drawing.fits(length, columns);
  std::string out =
      whole ? drawing.block(timeline, {0, length}) : folded(timeline, drawing, length, drawing.units_within(columns));
  std::string idle, in_flight;
  for (const Row& row : timeline.rows) {
    idle += text(" {}", length - busy_units(row));
    in_flight += text(" {}", schedule::peak_of(schedule::in_flight(row)));
  }
  const bool chunks = timeline.stage_map.stages() > static_cast<int>(timeline.rows.size());
  out += os::fold_words(text("idle, of {} units of time, by rank:{}\n", length, idle), columns);
  out += os::fold_words(
      text("peak of {} in flight, by rank:{}\n", chunks ? "microbatch chunks" : "microbatches", in_flight), columns);
  return whole || style.folded.empty() ? out : out + os::fold_words(style.folded, columns) + '\n';
}

} // namespace triax::draw
